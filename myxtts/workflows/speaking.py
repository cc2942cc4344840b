"""Speech and recordings to be judged: sentences spoken by a voice, read, and resynthesised."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.monitoring.progress import progress

if TYPE_CHECKING:
    import numpy as np

    from myxtts.config.audio_spec import AudioSpec
    from myxtts.data.corpus.utterance import Utterance
    from myxtts.evaluation.metrics.robustness import HardSpeech
    from myxtts.evaluation.metrics.session import Sentence
    from myxtts.inference.speech import Speech
    from myxtts.inference.synthesizer import Synthesizer
    from myxtts.inference.vocoders import Vocoder

REFERENCE = "the reference"  # the speaker of cloned speech
EXAMPLES, MOST_SPEAKERS = 6, 12  # recordings that represent a speaker; speakers to compare with


def speak_sentences(
    synthesizer: "Synthesizer",
    utterances: "Sequence[Utterance]",
    language: str,
    reference: Sequence[str] | None = None,
    report: Callable[[int, int], None] = lambda done, total: None,
) -> "list[Speech]":
    """Speak the texts of utterances, each as its own speaker, or all as that of a reference."""
    spoken: dict[str, Speech] = {}
    for speaker in dict.fromkeys(one.speaker for one in utterances):
        own = [one for one in utterances if one.speaker == speaker]
        who = {"reference": reference} if reference else {"speaker": speaker}
        done = len(spoken)
        found = synthesizer.speak_many(
            [one.text for one in own],
            lambda count, _, done=done: report(min(done + count, len(utterances)), len(utterances)),
            language=language,
            **who,
        )
        spoken.update(zip((one.id for one in own), found, strict=True))
    return [spoken[one.id] for one in utterances]


def speak_hard_texts(
    synthesizer: "Synthesizer", held_out: "Sequence[Speech]", **options
) -> "HardSpeech":
    """Speak the hard texts of a language; held-out speech shows the voice's usual durations."""
    from myxtts.evaluation.hard_sentences import hard_sentences
    from myxtts.evaluation.metrics.robustness import Attempt, HardSpeech, measure_pace

    hard = hard_sentences(options["language"])
    silent = set(synthesizer.nothing_to_say([one.text for one in hard], options["language"]))
    hard = [one for number, one in enumerate(hard) if number not in silent]
    spoken = synthesizer.speak_many([one.text for one in hard], **options)
    attempts = [
        Attempt(one.kind, one.text, said.tokens, said.durations, said.spoken_frames)
        for one, said in zip(hard, spoken, strict=True)
    ]
    pace = measure_pace([one.tokens for one in held_out], [one.durations for one in held_out])
    return HardSpeech(attempts, [one.samples for one in spoken], pace)


def make_sentences(
    utterances: "Sequence[Utterance]",
    spoken: "Sequence[np.ndarray]",
    recorded: "Sequence[np.ndarray] | None" = None,
    resynthesised: "Sequence[np.ndarray] | None" = None,
    speaker: str = "",
    durations: "Sequence[np.ndarray] | None" = None,
) -> "list[Sentence]":
    """Pair utterances with their speech; a `speaker` stands in for their own."""
    from myxtts.evaluation.metrics.session import Sentence

    none = [None] * len(spoken)
    found = (spoken, recorded or none, resynthesised or none, durations or none)
    return [
        Sentence(one.id, one.text, said, speaker or one.speaker, *others)
        for one, said, *others in zip(utterances, *found, strict=True)
    ]


def read_all(paths: Sequence[Path], sample_rate: int) -> "list[np.ndarray]":
    """Read recordings on all cores."""
    from myxtts.audio.io import read_audio
    from myxtts.monitoring.cores import available_cores

    with ThreadPoolExecutor(available_cores()) as pool:
        return list(pool.map(lambda path: read_audio(path, sample_rate), paths))


def resynthesise(
    recorded: "Sequence[np.ndarray]", vocoder: "Vocoder", spec: "AudioSpec"
) -> "list[np.ndarray]":
    """Recordings as a vocoder makes them from their own log-mels."""
    from myxtts.audio.mel import log_mel
    from myxtts.monitoring.cores import available_cores

    made = []
    with (
        progress("resynthesising", "recordings") as report,
        ThreadPoolExecutor(available_cores()) as pool,
    ):
        for one in pool.map(lambda samples: vocoder(log_mel(samples, spec), spec, 0), recorded):
            made.append(one)
            report(len(made), len(recorded))
    return made


def known_recordings(
    utterances: "Sequence[Utterance]", needed: Sequence[str], sample_rate: int
) -> "dict[str, list[np.ndarray]]":
    """Some recordings of each speaker: of those that are needed, and of a few others."""
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
    """Write recordings as 0001.wav and so on, in place of those of an earlier run."""
    from myxtts.audio.io import write_wav

    for old in folder.glob("*.wav"):
        old.unlink()
    for number, samples in enumerate(recordings, start=1):
        write_wav(folder / f"{number:04d}.wav", samples, sample_rate)
