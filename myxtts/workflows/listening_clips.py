"""The clips of a listening test: the same sentences from folders of audio and from voices."""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from myxtts.checkpoints import holds_voice
from myxtts.errors import UserError
from myxtts.monitoring.progress import progress
from myxtts.workflows import evaluate_voice
from myxtts.workflows.speaking import by_name, by_reference, read_all, speak_sentences

if TYPE_CHECKING:
    import numpy as np

    from myxtts.data.corpus.recordings import Locator
    from myxtts.data.corpus.utterance import Utterance
    from myxtts.inference.synthesizer import Synthesizer

    Clips = list[list[np.ndarray]]  # of each system, of each sentence

HIDDEN = "hidden reference"  # a folder of recordings, whatever else it holds
_HIGHEST_RATE = 48_000


@dataclass(frozen=True)
class Speaking:
    """What voices say, and how: the lines of `texts`, or what they held out of `corpus`.

    Without voices, `texts` are the metadata of the folders, and only shown.
    """

    texts: Path | None = None
    corpus: Path | None = None
    data: Mapping[str, Any] = field(default_factory=dict)  # instead of the voices' own settings
    speaker: str | None = None
    reference: Sequence[str] | None = None
    language: str | None = None
    vocoder: str = evaluate_voice.VOCODER
    options: Mapping[str, Any] = field(default_factory=dict)  # further `SpeakingOptions`


def gather_clips(
    systems: Mapping[str, Path], count: int, speaking: Speaking
) -> "tuple[list[tuple[str, str]], Clips, int]":
    """Return sentences (id and text) that all systems have, their clips, and the sample rate."""
    from myxtts.evaluation.evaluator import choose_utterances

    voices = [name for name, path in systems.items() if name != HIDDEN and holds_voice(path)]
    folders = {name: AudioFolder(path) for name, path in systems.items() if name not in voices}
    speakers = _load_voices({name: systems[name] for name in voices}, speaking)
    script = _voices_script(speakers, speaking) if voices else _folder_script(folders, speaking)
    chosen = choose_utterances(_in_all(script, folders), count)
    rate = _common_rate(chosen, folders, speakers)
    clips = [
        _recorded(folders[name], chosen, rate)
        if name in folders
        else _spoken(name, speakers[name], chosen, rate, speaking)
        for name in systems
    ]
    return [(one.id, one.text) for one in chosen], clips, rate


def clip_id(name: str) -> str:
    """The id of a sentence as an evaluation names its wav: without folders."""
    return name.replace("/", "_")


class AudioFolder:
    """A folder of recordings, by their ids."""

    def __init__(self, path: Path):
        self.path = path.absolute()
        if not self.clips:
            raise UserError(f"there is neither audio nor a voice in {path}: name another folder")

    @cached_property
    def _locator(self) -> "Locator":
        from myxtts.data.corpus.recordings import Recordings, make_locator

        place = str(self.path)
        return make_locator(Recordings([place]), place, place, [])

    @cached_property
    def clips(self) -> dict[str, Path]:
        recordings = self._locator.recordings
        paths = filter(None, map(recordings.find, recordings.stems()))
        return {clip_id(self._locator.identify(path)): Path(path) for path in paths}

    def texts(self, metadata: Path) -> dict[str, str]:
        """What is said, by id, from any metadata that a corpus may have."""
        from myxtts.data.corpus.dialects import read_metadata

        texts = {}
        if listing := read_metadata(str(metadata), self._locator):
            for row in listing.rows:
                if path := not row.reason and listing.locator.locate(row.recording):
                    texts[clip_id(listing.locator.identify(path))] = row.text
        if not texts:
            raise UserError(f"{metadata} has no text of any recording in {self.path}")
        return texts


# What is said.


def _load_voices(paths: Mapping[str, Path], speaking: Speaking) -> "dict[str, Synthesizer]":
    if paths and not (speaking.texts or speaking.corpus):
        raise UserError(
            "a voice needs something to say: name a file of texts with --texts, or the corpus that "
            "it was trained on with --corpus"
        )
    load = evaluate_voice.load_synthesizer
    return {name: load(path, speaking.vocoder) for name, path in paths.items()}


def _voices_script(speakers: "Mapping[str, Synthesizer]", speaking: Speaking) -> "list[Utterance]":
    """What all voices are asked to say: given texts, or what none of them was trained on."""
    from myxtts.data.corpus.utterance import Utterance
    from myxtts.workflows.synthesize import read_lines

    if speaking.texts:
        lines = read_lines(speaking.texts).items()
        return [Utterance(name, Path(), text, speaking.speaker or "", "") for name, text in lines]
    held_out = [_held_out(one, speaking) for one in speakers.values()]
    everywhere = set.intersection(*({one.id for one in some} for some in held_out))
    if not everywhere:
        raise UserError(f"no sentence of {speaking.corpus} is held out by all of the voices")
    return [one for one in held_out[0] if one.id in everywhere]


def _held_out(synthesizer: "Synthesizer", speaking: Speaking) -> "list[Utterance]":
    """All that a voice's own settings hold out of the corpus."""
    from myxtts.inference.speaking_options import find_language

    own = synthesizer.voice.config.data
    settings = replace(own, dataset_path=str(speaking.corpus), **speaking.data)
    language = find_language(speaking.language, synthesizer.voice)
    who = (speaking.speaker, speaking.reference)
    found, _ = evaluate_voice.choose_held_out(settings, synthesizer, language, sys.maxsize, *who)
    return found


def _folder_script(folders: Mapping[str, AudioFolder], speaking: Speaking) -> "list[Utterance]":
    """All sentences of the first folder, with their texts if these were named."""
    from myxtts.data.corpus.utterance import Utterance

    first = next(iter(folders.values()))
    texts = first.texts(speaking.texts) if speaking.texts else {}
    clips = first.clips.items()
    return [Utterance(name, path, texts.get(name, ""), "", "") for name, path in clips]


def _in_all(script: "Sequence[Utterance]", folders: Mapping[str, AudioFolder]) -> "list[Utterance]":
    """The sentences that every folder has."""
    clips = [folder.clips for folder in folders.values()]
    common = [one for one in script if all(clip_id(one.id) in own for own in clips)]
    if not common:
        examples = dict.fromkeys([clip_id(script[0].id), *(next(iter(own)) for own in clips)])
        raise UserError(
            f"no sentence is in all systems ({', '.join(examples)}, ...): clips of the same "
            "sentence must have the same name"
        )
    return common


# How it sounds.


def _common_rate(
    chosen: "Sequence[Utterance]",
    folders: Mapping[str, AudioFolder],
    speakers: "Mapping[str, Synthesizer]",
) -> int:
    """The highest rate of all clips: resampling to it loses nothing."""
    from myxtts.audio.io import read_info

    paths = [folder.clips[clip_id(one.id)] for folder in folders.values() for one in chosen]
    rates = [read_info(path).sample_rate for path in paths]
    rates += [one.spec.sample_rate for one in speakers.values()]
    return min(max(rates), _HIGHEST_RATE)


def _recorded(folder: AudioFolder, chosen: "Sequence[Utterance]", rate: int) -> "list[np.ndarray]":
    paths = [folder.clips[clip_id(one.id)] for one in chosen]
    clips = read_all(paths, rate)
    for path, clip in zip(paths, clips, strict=True):
        _check_sound(clip, rate, str(path))
    return clips


def _spoken(
    name: str,
    synthesizer: "Synthesizer",
    chosen: "Sequence[Utterance]",
    rate: int,
    speaking: Speaking,
) -> "list[np.ndarray]":
    """Speech of a voice, as the sentences' own speakers or else as its first one."""
    from myxtts.audio.io import resample
    from myxtts.inference.speaking_options import find_language

    voice = synthesizer.voice
    language = find_language(speaking.language, voice)
    own = [replace(one, speaker=one.speaker or voice.speakers[0]) for one in chosen]
    who = by_reference(speaking.reference) if speaking.reference else by_name
    with progress(f"{name} speaks", "sentences") as report:
        speech = speak_sentences(synthesizer, own, language, who, report, **speaking.options)
    for sentence, one in zip(chosen, speech, strict=True):
        _check_sound(one.samples, one.sample_rate, f"{sentence.id}, as {name} says it,")
    return [resample(one.samples, one.sample_rate, rate) for one in speech]


def _check_sound(samples: "np.ndarray", rate: int, what: str) -> None:
    from myxtts.audio.cleanup import loudness

    if loudness(samples, rate) == -math.inf:
        raise UserError(f"{what} is silent: nobody can compare that")
