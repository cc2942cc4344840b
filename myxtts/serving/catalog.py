"""The routes that list voices and models, and those that clone a voice and delete it."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, File, Form, UploadFile

from myxtts.serving import schemas
from myxtts.serving.clones import (
    LONGEST_CONSENT,
    LONGEST_NAME,
    Clone,
    NameTakenError,
    UnknownCloneError,
)
from myxtts.serving.fields import about
from myxtts.serving.schemas import problems
from myxtts.serving.service import SpeechService, UnknownModelError, UnknownVoiceError
from myxtts.serving.uploads import RATE, Uploads
from myxtts.serving.voices import BUILT_IN, MODELS

_READ_AT_A_TIME = 2  # uploads


def build_router(service: SpeechService) -> APIRouter:
    """The routes over a service."""
    router = APIRouter(tags=["voices"])
    uploads = Uploads()
    reading = asyncio.Semaphore(_READ_AT_A_TIME)

    @router.get("/v1/audio/voices", responses=problems(401, 403))
    async def list_voices() -> schemas.VoiceList:
        """Who can be asked for, as Open WebUI reads it."""
        own = [
            schemas.VoiceEntry(id=one.id, name=one.id, languages=list(one.voice.languages))
            for one in service.voices.speakers()
        ]
        clones = [
            schemas.VoiceEntry(
                id=one.id, name=one.name, languages=list(served.languages), is_clone=True
            )
            for one in service.clones.all()
            if (served := service.voices.named(one.voice))
        ]
        return schemas.VoiceList(voices=[*own, *clones])

    @router.get("/v1/models", responses=problems(401, 403))
    async def list_models() -> schemas.ModelList:
        """OpenAI's names, all of which mean any voice, and the voices by their own."""
        return schemas.ModelList(data=[schemas.Model(id=name) for name in _models(service)])

    @router.get("/v1/models/{model}", responses=problems(400, 401, 403, 404))
    async def get_model(model: str) -> schemas.Model:
        """One of them."""
        if model not in _models(service):
            raise UnknownModelError("there is no such model: GET /v1/models has them all")
        return schemas.Model(id=model)

    async def create_voice(
        name: Annotated[str, Form(min_length=1, max_length=LONGEST_NAME)],
        consent: Annotated[str, Form(min_length=1, max_length=LONGEST_CONSENT)],
        audio_sample: Annotated[UploadFile, File(description="speech, at best 10 s or more")],
        voice: Annotated[str | None, Form(max_length=200)] = None,
    ) -> schemas.ClonedVoice:
        """Clone the voice of a recording, with a statement in which its speaker agrees."""
        served = service.voices.named(voice) if voice else service.voices.served[0]
        if served is None:
            raise UnknownVoiceError("there is no voice of that name to clone with")
        _check_free(name, service)
        service.clones.check(name, consent)
        async with reading:  # others wait on the disk, not in memory
            with about("audio_sample"):
                samples = await uploads.decode(await audio_sample.read())
        kept = (name, served.name, consent, samples, RATE)
        clone = await asyncio.to_thread(service.clones.add, *kept)
        try:
            with about("audio_sample"):
                await service.embed(clone)
        except BaseException:
            await asyncio.to_thread(service.clones.remove, clone)
            raise
        return _shown(clone)

    for path in ("/v1/voices", "/v1/audio/voices"):  # the second is where OpenAI's client posts
        problem = problems(400, 401, 403, 408, 409, 413, 503)
        router.post(path, responses=problem)(create_voice)

    @router.delete("/v1/voices/{id}", responses=problems(400, 401, 403, 404))
    async def delete_voice(id: str) -> schemas.DeletedVoice:
        """Delete a cloned voice, its recording and the consent."""
        clone = service.clones.find(id)
        if clone is None or clone.id != id:
            raise UnknownCloneError("there is no cloned voice of that id")
        await asyncio.to_thread(service.clones.remove, clone)
        return schemas.DeletedVoice(id=clone.id)

    return router


def _models(service: SpeechService) -> list[str]:
    return [*(one.name for one in service.voices.served), *MODELS]


def _check_free(name: str, service: SpeechService) -> None:
    """Raise where a name would hide another voice."""
    taken = {*(one.id for one in service.voices.speakers()), *BUILT_IN}
    if " ".join(name.split()) in taken:
        raise NameTakenError("a voice of the server has that name: choose another one")


def _shown(clone: Clone) -> schemas.ClonedVoice:
    return schemas.ClonedVoice(
        id=clone.id,
        name=clone.name,
        created_at=clone.created,
        voice=clone.voice,
        consent=clone.consent,
    )
