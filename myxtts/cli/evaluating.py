"""What an evaluation needs of a voice, a corpus and this machine: speech, recordings and judges."""

import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.config.config import XTTSConfig
from myxtts.errors import UserError
from myxtts.monitoring.progress import progress

if TYPE_CHECKING:
    import numpy as np

    from myxtts.checkpoints import Voice
    from myxtts.config.audio_spec import AudioSpec
    from myxtts.data.corpus.utterance import Utterance
    from myxtts.evaluation.evaluator import HardSpeech, Judges, Subject
    from myxtts.inference.speech import Speech
    from myxtts.inference.synthesizer import Synthesizer
    from myxtts.inference.vocoders import Vocoder
    from myxtts.training.hooks.evaluation import Evaluated

ENCODERS = ("ecapa_tdnn", "resemblyzer")
REFERENCE = "the reference"  # who speaks where a voice is cloned
EXAMPLES, MOST_SPEAKERS = 6, 12  # recordings to know a speaker by, and speakers to be told apart

METRICS = ("wer", "cer", "mos")  # which need a judge

logger = logging.getLogger(__name__)

Watch = Callable[[str, str], AbstractContextManager]


def find_judges(
    language: str, asr_model: str | None, weights: Path, own: str | None = None
) -> "Judges":
    """Find what can judge speech in a language, and whose it is unless `own` is None.

    It is the encoder, if any, that describes the voice: none marks its own work where there is
    another.
    """
    from myxtts.evaluation.evaluator import LISTENING, RATING, VOICES, Judges

    judges = Judges(absent={})
    finders = {
        LISTENING: lambda: {"recogniser": _find_recogniser(language, asr_model)},
        RATING: lambda: {"rater": _find_rater(weights)},
    }
    if own is not None:
        finders[VOICES] = lambda: _find_encoder(weights, own)
    for part, find in finders.items():
        try:
            judges = replace(judges, **find())
        except UserError as error:
            if part == LISTENING and asr_model:
                raise  # the user has named it
            judges = replace(judges, absent={**judges.absent, part: str(error)})
    return judges


def check_metric(metric: str, judges: "Judges") -> None:
    """Refuse to keep the best voice by what nobody can measure."""
    from myxtts.evaluation.evaluator import KINDS

    part = KINDS[metric].part if metric in KINDS else ""
    if part in judges.absent:
        raise UserError(
            f"the best voice cannot be kept by {metric} (--evaluation-metric): "
            f"{judges.absent[part]}; or choose mcd or loss, which need recordings alone"
        )


def say_held_out(
    synthesizer: "Synthesizer",
    utterances: "Sequence[Utterance]",
    language: str,
    reference: Sequence[str] | None = None,
    told: Callable[[int, int], None] = lambda done, total: None,
    **manner,
) -> "list[Speech]":
    """Say what utterances say, each in its own speaker's voice, or all in that of a reference."""
    said: dict[str, Speech] = {}
    for speaker in dict.fromkeys(one.speaker for one in utterances):
        own = [one for one in utterances if one.speaker == speaker]
        who = {"reference": reference} if reference else {"speaker": speaker}
        done = len(said)
        spoken = synthesizer.speak_many(
            [one.text for one in own],
            lambda count, _, done=done: told(min(done + count, len(utterances)), len(utterances)),
            language=language,
            **who,
            **manner,
        )
        said.update(zip((one.id for one in own), spoken, strict=True))
    return [said[one.id] for one in utterances]


def say_hard_texts(
    synthesizer: "Synthesizer", held_out: "Sequence[Speech]", **manner
) -> "HardSpeech":
    """Say the hard texts of a language; the voice's pace is that of held-out ones."""
    from myxtts.evaluation.evaluator import HardSpeech
    from myxtts.evaluation.hard_sentences import hard_sentences
    from myxtts.evaluation.metrics.robustness import Attempt, measure_pace

    hard = hard_sentences(manner["language"])
    silent = set(synthesizer.nothing_to_say([one.text for one in hard], manner["language"]))
    hard = [one for number, one in enumerate(hard) if number not in silent]
    spoken = synthesizer.speak_many([one.text for one in hard], **manner)
    attempts = [
        Attempt(one.kind, one.text, said.tokens, said.durations, said.spoken_frames)
        for one, said in zip(hard, spoken, strict=True)
    ]
    pace = measure_pace([one.tokens for one in held_out], [one.durations for one in held_out])
    return HardSpeech(attempts, [one.samples for one in spoken], pace)


def read_all(paths: Sequence[Path], sample_rate: int) -> "list[np.ndarray]":
    """Read recordings on all cores."""
    from myxtts.audio.io import read_audio
    from myxtts.monitoring.cores import available_cores

    with ThreadPoolExecutor(available_cores()) as pool:
        return list(pool.map(lambda path: read_audio(path, sample_rate), paths))


def copy_all(
    recorded: "Sequence[np.ndarray]", vocoder: "Vocoder", spec: "AudioSpec", watch: Watch = progress
) -> "list[np.ndarray]":
    """Recordings as a vocoder makes them from their log-mels."""
    from myxtts.audio.mel import log_mel
    from myxtts.monitoring.cores import available_cores

    copies = []
    with watch("copying", "recordings") as told, ThreadPoolExecutor(available_cores()) as pool:
        for copy in pool.map(lambda samples: vocoder(log_mel(samples, spec), spec, 0), recorded):
            copies.append(copy)
            told(len(copies), len(recorded))
    return copies


def known_recordings(
    utterances: "Sequence[Utterance]", needed: Sequence[str], sample_rate: int
) -> "dict[str, list[np.ndarray]]":
    """Some recordings of speakers: of those that are needed, and of a few others."""
    from myxtts.evaluation.evaluator import choose_utterances

    own: dict[str, list[Utterance]] = {name: [] for name in needed}
    for one in utterances:
        if one.speaker in own or len(own) < MOST_SPEAKERS:
            own.setdefault(one.speaker, []).append(one)
    return {
        name: read_all([one.audio for one in choose_utterances(some, EXAMPLES)], sample_rate)
        for name, some in own.items()
    }


class VoiceEvaluator:
    """Says the same held-out sentences of a corpus each time it is asked; they are scored later."""

    def __init__(self, judges: "Judges", sentences: int, language: str):
        self.judges, self.sentences, self.language = judges, sentences, language
        self._recorded: dict[str, np.ndarray] = {}

    def __call__(
        self, voice: "Voice", utterances: "Sequence[Utterance]"
    ) -> "Callable[[], Evaluated]":
        """Speak at once; return what scores that, when it is called."""
        from myxtts.evaluation.evaluator import Sentence, Subject
        from myxtts.inference.synthesizer import Synthesizer

        chosen = self._choose(voice, utterances)
        speech = say_held_out(Synthesizer(voice), chosen, self.language)
        spec = voice.config.data.audio_spec
        is_first = not self._recorded
        if is_first:
            paths = [one.audio for one in chosen]
            ids = (one.id for one in chosen)
            self._recorded = dict(zip(ids, read_all(paths, spec.sample_rate), strict=True))
        sentences = [
            Sentence(one.id, one.text, said.samples, one.speaker, self._recorded[one.id])
            for one, said in zip(chosen, speech, strict=True)
        ]
        subject = Subject(str(voice.folder), self.language, spec, sentences, has_ceilings=is_first)
        return lambda: self._score(subject, speech[0])

    def _choose(self, voice: "Voice", utterances: "Sequence[Utterance]") -> "list[Utterance]":
        from myxtts.evaluation.evaluator import choose_utterances

        able = [
            one
            for one in utterances
            if one.language == self.language and one.speaker in voice.speakers
        ]
        if not able:
            raise UserError(
                f"no held-out sentence is in {self.language!r} and by a speaker that the voice "
                "knows: evaluation needs some"
            )
        return choose_utterances(able, self.sentences)

    def _score(self, subject: "Subject", first: "Speech") -> "Evaluated":
        from myxtts.evaluation.evaluator import COMPARING, LISTENING, RATING, RECORDINGS, evaluate
        from myxtts.training.hooks.evaluation import Evaluated

        found = evaluate(subject, self.judges)
        wanted = (LISTENING, RATING, COMPARING)
        scores = {
            name: value
            for name, value in found.scores().items()
            if found.measures[name].kind.part in wanted
        }
        for name in METRICS:
            ceiling = found.measures[name].intervals.get(RECORDINGS) if name in scores else None
            if ceiling:
                scores[f"recorded_{name}"] = ceiling.value
        return Evaluated(scores, first.samples, first.sample_rate, path_of(first))


def path_of(speech: "Speech") -> "np.ndarray":
    """Which token each frame says [tokens, frames], 1 where it does."""
    import numpy as np

    tokens = np.repeat(np.arange(len(speech.durations)), speech.durations)
    return (np.arange(len(speech.durations))[:, None] == tokens).astype(np.float32)


def training_evaluator(config: XTTSConfig) -> VoiceEvaluator | None:
    """What judges a voice while it trains, if that is wanted; what it lacks is said before."""
    from myxtts.evaluation.evaluator import KINDS

    training = config.training
    if not training.enable_evaluation:
        return None
    from myxtts.weights import default_folder

    language = config.data.language
    judges = find_judges(language, None, default_folder())
    check_metric(training.evaluation_metric, judges)
    for part, reason in judges.absent.items():
        names = [name.upper() for name in METRICS if KINDS[name].part == part]
        logger.warning("%s will not be measured: %s", " and ".join(names), reason)
    return VoiceEvaluator(judges, training.evaluation_sentences, language)


def _find_recogniser(language: str, model: str | None):
    from myxtts.evaluation.asr import WHISPER_FOLDER, recogniser_for

    found = recogniser_for(language, model)
    if found is None:
        raise UserError(
            f"there is no recogniser of {language!r} at hand: name the folder of a Whisper model "
            f"with --asr-model or {WHISPER_FOLDER}"
        )
    return found


def _find_rater(weights: Path):
    from myxtts.evaluation.metrics.quality import Dnsmos

    return Dnsmos.open(_present("dnsmos", weights))


def _find_encoder(weights: Path, own: str) -> dict[str, object]:
    from myxtts.checkpoints import load_speaker_encoder

    reasons = []
    for kind in sorted(ENCODERS, key=lambda kind: kind == own):
        try:
            encoder = load_speaker_encoder(kind, _present(kind, weights))
        except UserError as error:
            reasons.append(str(error))
        else:
            return {"embed": encoder.embed_many, "encoder": kind}
    raise UserError("; ".join(reasons))


def _present(name: str, weights: Path) -> Path:
    from myxtts.weights import FOLDER_VARIABLE, PUBLIC, is_present

    public = PUBLIC[name]
    if not is_present(public, weights):
        raise UserError(
            f"the weights of {name} are not in {weights}: `myxtts weights get {name}` fetches "
            f"them, and {FOLDER_VARIABLE} names another folder"
        )
    return weights / public.filename
