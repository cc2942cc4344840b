"""Speech and recordings to be judged: speak, read and resynthesise them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from myxtts.monitoring.cores import map_on_cores
from myxtts.monitoring.progress import progress

if TYPE_CHECKING:
    import numpy as np

    from myxtts.checkpoints import Voice
    from myxtts.config.audio_spec import AudioSpec
    from myxtts.data.corpus.utterance import Utterance
    from myxtts.evaluation.alignment import Alignment
    from myxtts.evaluation.metrics.robustness import HardSpeech
    from myxtts.evaluation.metrics.session import Sentence
    from myxtts.inference.speech import Speech
    from myxtts.inference.synthesizer import Synthesizer
    from myxtts.inference.vocoders import Vocoder

Who = Callable[[str], dict[str, Any]]  # a speaker -> who is to speak
REFERENCE = "the reference"  # the speaker of cloned speech
EXAMPLES, MOST_SPEAKERS = 6, 12  # recordings that represent a speaker; speakers to compare with


def by_name(speaker: str) -> dict[str, Any]:
    """Speak as a speaker that the voice knows."""
    return {"speaker": speaker}


def by_reference(reference: Sequence[str]) -> Who:
    """Speak as the speaker of recordings, whoever has recorded the sentence."""
    return lambda speaker: {"reference": reference}


def speak_sentences(
    synthesizer: "Synthesizer",
    utterances: "Sequence[Utterance]",
    language: str,
    who: Who = by_name,
    report: Callable[[int, int], None] = lambda done, total: None,
    **options: Any,
) -> "list[Speech]":
    """Speak the texts of utterances; `who` has the options that speak as the speaker of one.

    `options` are further ones of `Synthesizer.speak_many`.
    """
    spoken: dict[str, Speech] = {}
    for speaker in dict.fromkeys(one.speaker for one in utterances):
        own = [one for one in utterances if one.speaker == speaker]
        done = len(spoken)
        found = synthesizer.speak_many(
            [one.text for one in own],
            lambda count, _, done=done: report(min(done + count, len(utterances)), len(utterances)),
            language=language,
            **who(speaker),
            **options,
        )
        spoken.update(zip((one.id for one in own), found, strict=True))
    return [spoken[one.id] for one in utterances]


def speak_hard_texts(
    synthesizer: "Synthesizer", held_out: "Sequence[Speech]", **options
) -> "HardSpeech":
    """Speak the hard texts of a language; held-out speech shows the voice's usual durations."""
    from myxtts.evaluation.hard_sentences import hard_sentences
    from myxtts.evaluation.metrics.robustness import Attempt, HardSpeech, usual_durations

    hard = hard_sentences(options["language"])
    silent = set(synthesizer.nothing_to_say([one.text for one in hard], options["language"]))
    hard = [one for number, one in enumerate(hard) if number not in silent]
    spoken = synthesizer.speak_many([one.text for one in hard], **options)
    attempts = [
        Attempt(one.kind, one.text, said.tokens, said.durations, said.spoken_frames)
        for one, said in zip(hard, spoken, strict=True)
    ]
    usual = usual_durations([one.tokens for one in held_out], [one.durations for one in held_out])
    return HardSpeech(attempts, [one.samples for one in spoken], usual)


def speak_recorded(
    synthesizer: "Synthesizer",
    ceilings: "Mapping[str, Sequence[np.ndarray]]",
    folder: Path,
    recorded_by: str,
    prefix: str = "",
    **options: Any,
) -> "list[Sentence]":
    """Speak texts that a speaker has recorded, and write the speech as wavs into a folder.

    `ceilings` are the recording of each text and its resynthesis, if any. `options` are those of
    `Synthesizer.speak_many`. The id of a sentence is a prefix and a number.
    """
    speech = synthesizer.speak_many(list(ceilings), **options)
    write_all(folder, [one.samples for one in speech], synthesizer.spec.sample_rate)
    return [
        make_sentence(f"{prefix}{number:04d}", text, recorded_by, said, *ceilings[text])
        for number, (text, said) in enumerate(zip(ceilings, speech, strict=True), start=1)
    ]


def make_sentence(
    name: str,
    text: str,
    speaker: str,
    speech: "Speech",
    recorded: "np.ndarray",
    resynthesised: "np.ndarray | None" = None,
) -> "Sentence":
    """A sentence to be judged, with its recording by a speaker."""
    from myxtts.evaluation.metrics.session import Sentence

    ceilings, said = (recorded, resynthesised), (speech.durations, speech.mel, speech.tokens)
    return Sentence(name, text, speech.samples, speaker, *ceilings, *said)


def align_recordings(
    voice: "Voice", sentences: "Sequence[Sentence]", spec: "AudioSpec", language: str
) -> "list[Alignment]":
    """Align the recordings of sentences with their texts, by the voice itself."""
    from myxtts.audio.mel import log_mel
    from myxtts.audio.threads import single_threaded_blas
    from myxtts.checkpoints import load_trainable
    from myxtts.checkpoints.voices import ONNX
    from myxtts.evaluation.alignment import align

    if voice.engine == ONNX:  # whose graphs only speak
        voice = load_trainable(voice.folder)

    with single_threaded_blas():
        mels = map_on_cores(lambda one: log_mel(one.recorded, spec), sentences)
    return align(voice, mels, [one.text for one in sentences], language)


def read_all(paths: Sequence[Path], sample_rate: int) -> "list[np.ndarray]":
    """Read recordings on all cores."""
    from myxtts.audio.io import read_audio

    return map_on_cores(lambda path: read_audio(path, sample_rate), paths)


def resynthesise(
    recorded: "Sequence[np.ndarray]", vocoder: "Vocoder", spec: "AudioSpec"
) -> "list[np.ndarray]":
    """Recordings as a vocoder makes them from their own log-mels."""
    from myxtts.audio.mel import log_mel
    from myxtts.audio.threads import single_threaded_blas

    with progress("resynthesising", "recordings") as report, single_threaded_blas():
        return map_on_cores(
            lambda samples: vocoder(log_mel(samples, spec), spec, 0), recorded, report
        )


def known_recordings(
    utterances: "Sequence[Utterance]", needed: Sequence[str], sample_rate: int
) -> "dict[str, list[np.ndarray]]":
    """Some recordings of each of the needed speakers, and of a few others."""
    from myxtts.evaluation.evaluator import choose_utterances

    own: dict[str, list[Utterance]] = {name: [] for name in needed}
    for one in utterances:
        if one.speaker in own or len(own) < MOST_SPEAKERS:
            own.setdefault(one.speaker, []).append(one)
    return {
        name: read_all([one.audio for one in choose_utterances(some, EXAMPLES)], sample_rate)
        for name, some in own.items()
    }


def write_all(folder: Path, recordings: "Sequence[np.ndarray]", sample_rate: int) -> None:
    """Write recordings as 0001.wav and so on; remove those of an earlier run."""
    from myxtts.audio.io import write_wav

    for old in folder.glob("*.wav"):
        old.unlink()
    for number, samples in enumerate(recordings, start=1):
        write_wav(folder / f"{number:04d}.wav", samples, sample_rate)
