"""The studio as a part of the server: its pages, and the routes that they ask."""

import asyncio
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse, Response
from starlette.exceptions import HTTPException

from myxtts.config.presets import PRESETS
from myxtts.serving.service import SpeechService
from myxtts.serving.studio import schemas
from myxtts.serving.studio.comparisons import Comparisons
from myxtts.serving.studio.corpora import Corpora, can_transcribe
from myxtts.serving.studio.exports import Exports
from myxtts.serving.studio.jobs import Jobs, shown
from myxtts.serving.studio.places import Places
from myxtts.serving.studio.runs import Runs
from myxtts.serving.studio.security import Guard
from myxtts.serving.studio.voices import StudioVoices
from myxtts.text.languages import LANGUAGES
from myxtts.workflows.exports.settings import TARGETS, WEIGHTS
from myxtts.workflows.prompts import MOST, reading_prompts
from myxtts.workflows.review import LONGEST_TEXT

PAGE = "/studio"
API = "/studio/api"
_MOST_JOBS = 100  # that the page is told of
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
_POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
_POLICY += "media-src blob:; img-src 'self' data:; base-uri 'none'; form-action 'none'; "
_POLICY += "frame-ancestors 'none'"
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
# A page of a run, which is shown by itself: it may do nothing but show.
_SEALED = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
_SEALED += "img-src data:; sandbox allow-scripts"


class Studio:
    """All parts of a studio over one folder."""

    def __init__(self, folder: Path, service: SpeechService):
        self.places = Places(folder)
        self.guard = Guard()
        self.jobs = Jobs(self.places)
        self.corpora = Corpora(self.places, self.jobs)
        self.runs = Runs(self.places, self.jobs, self.corpora)
        self.comparisons = Comparisons(self.places, self.jobs, self.corpora)
        self.exports = Exports(self.places, self.jobs)
        self.voices = StudioVoices(self.places, service)

    def overview(self) -> dict[str, Any]:
        """What the page begins with."""
        return {
            "folder": str(self.places.folder),
            "languages": [
                {"code": code, "name": one.name, "can_transcribe": can_transcribe(code)}
                for code, one in LANGUAGES.items()
            ],
            "sizes": list(PRESETS),
            "targets": list(TARGETS),
            "weights": list(WEIGHTS),
            "jobs": [shown(one) for one in self.jobs.all()[:_MOST_JOBS]],
        }


def install(app: FastAPI, service: SpeechService, folder: Path) -> Studio:
    """Add a studio to an app."""
    studio = Studio(folder, service)
    studio.voices.refresh()
    _add_pages(app, studio)
    changing = [Depends(studio.guard)]
    for build in (
        _corpus_routes,
        _clip_routes,
        _take_routes,
        _run_routes,
        _comparison_routes,
        _other_routes,
    ):
        reading = APIRouter(prefix=API, include_in_schema=False)
        writing = APIRouter(prefix=API, include_in_schema=False, dependencies=changing)
        build(studio, reading, writing)
        app.include_router(reading)
        app.include_router(writing)
    return studio


def _add_pages(app: FastAPI, studio: Studio) -> None:
    folder = files("myxtts.serving.studio").joinpath("static")
    page = folder.joinpath("index.html").read_text(encoding="utf-8")
    page = page.replace("{{token}}", studio.guard.token)
    known = {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file()}

    @app.get("/", include_in_schema=False)
    async def show_front() -> Response:
        return RedirectResponse(PAGE, 307)

    @app.get(PAGE, include_in_schema=False)
    async def show_page() -> Response:
        return HTMLResponse(page, headers=_HEADERS)

    @app.get(PAGE + "/static/{name}", include_in_schema=False)
    async def show_file(name: str) -> Response:
        kind = _TYPES.get(Path(name).suffix)
        if name not in known or kind is None:
            raise HTTPException(404, "there is no such file")
        return Response(known[name], media_type=kind, headers=_HEADERS)


def _corpus_routes(studio: Studio, reading: APIRouter, writing: APIRouter) -> None:
    corpora = studio.corpora

    @reading.get("/corpora")
    def list_corpora() -> Any:
        return {"corpora": corpora.all()}

    @reading.get("/corpora/{name}")
    def get_corpus(name: str) -> Any:
        facts = corpora.facts(name)
        job = facts["job"]
        log = studio.jobs.log(job["id"]) if job else ""
        return {**facts, "recordings": corpora.recordings(name), "log": log}

    @writing.post("/corpora")
    def create_corpus(body: schemas.NewCorpus) -> Any:
        return corpora.create(body.title, body.language)

    @writing.post("/demo")
    def make_demo() -> Any:
        corpora.make_demo()
        return {"corpora": corpora.all()}

    @writing.delete("/corpora/{name}")
    def delete_corpus(name: str) -> Any:
        corpora.remove(name)
        return {"deleted": True}

    @writing.put("/corpora/{name}/recordings")
    async def add_recording(name: str, filename: str, request: Request) -> Any:
        return {"name": await corpora.add_recording(name, filename[:200], request.stream())}

    @writing.delete("/corpora/{name}/recordings/{recording}")
    def delete_recording(name: str, recording: str) -> Any:
        corpora.remove_recording(name, recording)
        return {"deleted": True}

    @writing.post("/corpora/{name}/slice")
    def cut(name: str) -> Any:
        return corpora.slice(name)

    @writing.post("/corpora/{name}/transcribe")
    def transcribe(name: str) -> Any:
        return corpora.transcribe(name)


def _clip_routes(studio: Studio, reading: APIRouter, writing: APIRouter) -> None:
    corpora = studio.corpora

    @reading.get("/corpora/{name}/clips")
    def get_clips(name: str, view: str = "all", start: int = 0, count: int = 50) -> Any:
        return corpora.table(name, view, max(0, start), max(1, count))

    @reading.get("/corpora/{name}/clips/{clip:path}/audio")
    def get_clip(name: str, clip: str) -> Response:
        return FileResponse(corpora.clip(name, clip), headers=_HEADERS)

    @reading.get("/prompts")
    def get_prompts(language: str) -> Any:
        prompts = reading_prompts(language) if language in LANGUAGES else ()
        return {"prompts": list(prompts), "most": MOST}

    @writing.post("/corpora/{name}/clips/{clip:path}")
    def change_clip(name: str, clip: str, body: schemas.ClipChange) -> Any:
        corpora.change(name, clip, body.text, body.excluded)
        return {"id": clip}

    @writing.post("/corpora/{name}/undo")
    def undo(name: str) -> Any:
        return {"id": corpora.undo(name)}


def _take_routes(studio: Studio, reading: APIRouter, writing: APIRouter) -> None:
    takes = studio.corpora.takes

    @reading.get("/takes")
    def list_takes(corpus: str | None = None) -> Any:
        return {"takes": takes.of(corpus)}

    @reading.get("/takes/{id}/audio")
    def get_take(id: str) -> Response:
        return FileResponse(takes.sound(id), media_type="audio/flac", headers=_HEADERS)

    @writing.put("/takes")
    async def add_take(text: str, request: Request, corpus: str | None = None) -> Any:
        return await takes.add(corpus, text[:LONGEST_TEXT], request.stream())

    @writing.post("/takes/{id}/keep")
    def keep_take(id: str, body: schemas.KeptTake) -> Any:
        return {"id": studio.corpora.keep_take(body.corpus, id, body.text)}

    @writing.delete("/takes/{id}")
    def discard_take(id: str) -> Any:
        takes.remove(id)
        return {"deleted": True}


def _run_routes(studio: Studio, reading: APIRouter, writing: APIRouter) -> None:
    runs = studio.runs

    @reading.get("/runs")
    def list_runs() -> Any:
        return {"runs": runs.all()}

    @reading.get("/runs/{name}")
    def get_run(name: str) -> Any:
        return runs.look(name)

    @reading.get("/runs/{name}/sample")
    def get_sample(name: str, tag: str, step: int) -> Response:
        return Response(runs.sample(name, tag, step), media_type="audio/wav", headers=_HEADERS)

    @reading.get("/runs/{name}/page")
    def get_page(name: str) -> Response:
        headers = {**_HEADERS, "Content-Security-Policy": _SEALED}
        return FileResponse(runs.page(name), media_type="text/html", headers=headers)

    @writing.post("/runs")
    def create_run(body: schemas.NewRun) -> Any:
        chosen = (body.title, body.corpus, body.size, body.steps, body.minutes, body.evaluate)
        return runs.create(*chosen)

    @writing.post("/runs/{name}/stop")
    def stop_run(name: str) -> Any:
        return runs.stop(name)

    @writing.post("/runs/{name}/resume")
    def resume_run(name: str, body: schemas.Resumed) -> Any:
        return runs.resume(name, body.steps, body.minutes)

    @writing.post("/runs/{name}/vocoder")
    def train_vocoder(name: str, body: schemas.NewVocoder) -> Any:
        return runs.train_vocoder(name, body.steps)

    @writing.post("/runs/{name}/keep")
    def keep_voice(name: str, body: schemas.Kept) -> Any:
        return {"voice": runs.keep(name, body.title)}

    @writing.delete("/runs/{name}")
    def delete_run(name: str) -> Any:
        runs.remove(name)
        return {"deleted": True}


def _comparison_routes(studio: Studio, reading: APIRouter, writing: APIRouter) -> None:
    comparisons = studio.comparisons

    def audio(path: Path) -> Response:
        return FileResponse(path, media_type="audio/wav", headers=_HEADERS)

    @reading.get("/comparisons")
    def list_comparisons() -> Any:
        return {"comparisons": comparisons.all()}

    @reading.get("/comparisons/{name}")
    def get_comparison(name: str) -> Any:
        return comparisons.look(name)

    @reading.get("/comparisons/{name}/audio/{side}/{number}")
    def get_side(name: str, side: str, number: int) -> Response:
        return audio(comparisons.clip(name, side, number))

    @reading.get("/comparisons/{name}/trials/{number}/{place}")
    def get_trial(name: str, number: int, place: int) -> Response:
        return audio(comparisons.trial_clip(name, number, place))

    @writing.post("/comparisons")
    async def create_comparison(body: schemas.NewComparison) -> Any:
        sides = [studio.voices.side(body.first), studio.voices.side(body.second)]
        chosen = (sides, body.sentences, body.language, body.corpus)
        return await asyncio.to_thread(comparisons.create, *chosen)

    @writing.post("/comparisons/{name}/answers")
    def answer(name: str, body: schemas.Answer) -> Any:
        return comparisons.answer(name, body.trial, body.place)

    @writing.delete("/comparisons/{name}/answers")
    def forget_answers(name: str) -> Any:
        comparisons.forget(name)
        return comparisons.look(name)

    @writing.delete("/comparisons/{name}")
    def delete_comparison(name: str) -> Any:
        comparisons.remove(name)
        return {"deleted": True}


def _other_routes(studio: Studio, reading: APIRouter, writing: APIRouter) -> None:
    jobs, exports = studio.jobs, studio.exports

    @reading.get("/overview")
    def get_overview() -> Any:
        return studio.overview()

    @reading.get("/voices")
    async def list_voices() -> Any:
        # On the event loop, like all who ask the server for its voices.
        return {"voices": studio.voices.all()}

    @reading.get("/jobs/{id}")
    def get_job(id: str) -> Any:
        return {**shown(jobs.read(id)), "log": jobs.log(id)}

    @writing.post("/jobs/{id}/stop")
    def stop_job(id: str) -> Any:
        return shown(jobs.stop(id))

    @reading.get("/exports")
    def list_exports() -> Any:
        return {"exports": exports.all()}

    @reading.get("/exports/{name}/archive")
    def get_archive(name: str) -> Response:
        path = exports.archive(name)
        return FileResponse(path, filename=path.name, headers=_HEADERS)

    @writing.post("/exports")
    async def create_export(body: schemas.NewExport) -> Any:
        served = studio.voices.served(body.voice)
        await asyncio.to_thread(exports.create, served, body.target, body.weights)
        return {"exports": exports.all()}

    @writing.delete("/exports/{name}")
    def delete_export(name: str) -> Any:
        exports.remove(name)
        return {"deleted": True}
