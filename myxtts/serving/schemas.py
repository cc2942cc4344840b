"""What is sent to the server and what it answers, as the API's description has it."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from myxtts.inference.speaking_options import FASTEST, SLOWEST
from myxtts.serving.service import Order

_Name = Annotated[str, Field(min_length=1, max_length=200)]


class Strict(BaseModel):
    """A number is no text, and text is no number; what is not known is ignored."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)


class VoiceId(Strict):
    id: _Name


class SpokenText(Strict):
    """What a text is and who says it."""

    input: Annotated[str, Field(min_length=1, description="the text to say")]
    model: Annotated[_Name, Field(description="tts-1, tts-1-hd, gpt-4o-mini-tts or a voice's name")]
    voice: Annotated[_Name | VoiceId, Field(description="an id of GET /v1/audio/voices, or alloy")]
    response_format: Literal["mp3", "opus", "aac", "flac", "wav", "pcm"] = "mp3"
    speed: Annotated[float, Field(ge=SLOWEST, le=FASTEST)] = 1.0
    instructions: Annotated[str | None, Field(description="ignored, and a header says so")] = None
    language: Annotated[_Name | None, Field(description="default: the voice's first")] = None
    speaker: Annotated[_Name | None, Field(description="one of the voice's speakers")] = None
    seed: Annotated[int, Field(ge=0, lt=2**31)] = 0
    style: Annotated[
        list[float] | None, Field(max_length=256, description="a weight for each style token")
    ] = None
    ssml: Annotated[bool, Field(description="the input is a document of SSML")] = False

    def order(self) -> Order:
        voice = self.voice if isinstance(self.voice, str) else self.voice.id
        style = tuple(self.style) if self.style is not None else None
        how = self.speaker, self.language, self.speed, self.seed, style, self.ssml
        return Order(self.input, voice, self.model, *how)


class SpeechRequest(SpokenText):
    """OpenAI's fields, and our own: language, speaker, seed, style, ssml, timestamps."""

    stream_format: Literal["audio", "sse"] = "audio"
    timestamps: Annotated[bool, Field(description="with sse: the times of words too")] = False


class CaptionedRequest(SpokenText):
    """A text whose words come back with their times."""


class Word(BaseModel):
    word: str
    start_time: float
    end_time: float


class CaptionedSpeech(BaseModel):
    audio: Annotated[str, Field(description="base64")]
    audio_format: str
    timestamps: list[Word]


class VoiceEntry(BaseModel):
    id: str
    name: str
    languages: list[str]
    is_clone: bool = False


class VoiceList(BaseModel):
    voices: list[VoiceEntry]


class Model(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str = "myxtts"


class ModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[Model]


class ClonedVoice(BaseModel):
    id: str
    name: str
    object: Literal["audio.voice"] = "audio.voice"
    created_at: int
    voice: Annotated[str, Field(description="the voice that speaks as it")]
    consent: str


class DeletedVoice(BaseModel):
    id: str
    object: Literal["audio.voice.deleted"] = "audio.voice.deleted"
    deleted: bool = True


class Health(BaseModel):
    status: Literal["ok"] = "ok"
    version: str


class Readiness(BaseModel):
    status: Literal["ready", "loading"]


class ErrorDetail(BaseModel):
    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(BaseModel):
    error: ErrorDetail


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """How a route describes its errors."""
    return {status: {"model": ErrorBody} for status in statuses}
