"""What the studio's page sends."""

from typing import Annotated

from pydantic import Field

from myxtts.serving.schemas import Strict

_Title = Annotated[str, Field(min_length=1, max_length=200)]
_Id = Annotated[str, Field(min_length=1, max_length=200)]


class NewCorpus(Strict):
    title: _Title
    language: _Id


class ClipChange(Strict):
    text: Annotated[str | None, Field(max_length=5000)] = None
    excluded: bool | None = None


class KeptTake(Strict):
    corpus: _Id
    text: Annotated[str, Field(max_length=5000)]


class NewRun(Strict):
    title: _Title
    corpus: _Id
    size: _Id
    steps: int
    minutes: float | None = None
    evaluate: bool = False


class Resumed(Strict):
    steps: int | None = None
    minutes: float | None = None


class NewVocoder(Strict):
    steps: int


class Kept(Strict):
    title: _Title


class NewComparison(Strict):
    first: _Id
    second: _Id
    sentences: Annotated[list[str], Field(max_length=1000)]
    language: _Id
    corpus: _Id | None = None


class Answer(Strict):
    trial: int
    place: int | None = None


class NewExport(Strict):
    voice: _Id
    target: _Id
    weights: _Id = "float32"
