"""The evaluator that training calls: it speaks held-out sentences now, and scores them later."""

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from myxtts.config.config import XTTSConfig
from myxtts.config.fields import ConfigError
from myxtts.errors import UserError
from myxtts.evaluation.metrics.table import (
    ASR,
    HIGHER,
    METRICS,
    RATER,
    RECORDED,
    RECORDINGS,
    Metric,
    metrics_that_need,
)
from myxtts.workflows.judges import find_judges
from myxtts.workflows.speaking import make_sentence, read_all, speak_sentences

if TYPE_CHECKING:
    import numpy as np

    from myxtts.checkpoints import Voice
    from myxtts.data.corpus.utterance import Utterance
    from myxtts.evaluation.metrics.session import Judges, Subject
    from myxtts.inference.speech import Speech
    from myxtts.training.hooks.evaluation import Evaluated

LOSS = "loss"  # of the validation; it needs no evaluation
DISTANCE = "_distance"  # ends the score of how far a figure is from its metric's target
# A speaker encoder and hard texts would take more time than all other metrics.
NEEDS = (ASR, RATER, RECORDINGS)

logger = logging.getLogger(__name__)


def metric_choices() -> list[str]:
    """What can select the best voice: metrics with a better direction, and the loss.

    Of a metric with a target it is the distance from it.
    """
    able = [name for name in metrics_that_need(*NEEDS) if METRICS[name].better]
    return [*(name if METRICS[name].target is None else name + DISTANCE for name in able), LOSS]


def training_evaluator(config: XTTSConfig) -> "VoiceEvaluator | None":
    """The evaluator of a training run, if enabled; warn about metrics that cannot be measured."""
    training = config.training
    if not training.enable_evaluation:
        return None
    from myxtts.weights import default_folder

    language = config.data.language
    judges = find_judges(language, None, default_folder())
    check_metric(training.evaluation_metric, judges)
    for need, reason in judges.absent.items():
        names = [_metric(name).title for name in metric_choices() if _needs(name, need)]
        if names:
            logger.warning("%s will not be measured: %s", ", ".join(names), reason)
    return VoiceEvaluator(judges, training.evaluation_sentences, language)


def check_metric(metric: str, judges: "Judges") -> None:
    """Raise where the metric for the best voice is unknown or cannot be measured here."""
    choices = metric_choices()
    if metric not in choices:
        raise ConfigError(
            f"training.evaluation_metric must be one of {', '.join(choices)}; got {metric!r}"
        )
    for need, reason in judges.absent.items():
        if _needs(metric, need):
            raise UserError(
                f"the best voice cannot be kept by {metric} (--evaluation-metric): "
                f"{reason}; or choose mcd or loss, which need recordings alone"
            )


def _needs(choice: str, need: str) -> bool:
    return choice != LOSS and need in _metric(choice).needs


def _metric(choice: str) -> Metric:
    return METRICS[choice.removesuffix(DISTANCE)]


class VoiceEvaluator:
    """Speaks the same held-out sentences of a corpus at each call, to be scored later."""

    def __init__(self, judges: "Judges", sentences: int, language: str):
        self.judges, self.sentences, self.language = judges, sentences, language
        self.higher_is_better = {name for name, one in METRICS.items() if one.better == HIGHER}
        self._recorded: list[np.ndarray] = []

    def __call__(
        self, voice: "Voice", utterances: "Sequence[Utterance]"
    ) -> "Callable[[], Evaluated]":
        """Speak at once; return a function that scores the speech."""
        from myxtts.evaluation.metrics.session import Subject
        from myxtts.inference.synthesizer import Synthesizer

        chosen = self._choose(voice, utterances)
        speech = speak_sentences(Synthesizer(voice), chosen, self.language)
        spec = voice.config.data.audio_spec
        is_first = not self._recorded
        if is_first:
            self._recorded = read_all([one.audio for one in chosen], spec.sample_rate)
        sentences = [
            make_sentence(one.id, one.text, one.speaker, *others)
            for one, *others in zip(chosen, speech, self._recorded, strict=True)
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
        from myxtts.evaluation.evaluator import evaluate
        from myxtts.training.hooks.evaluation import Evaluated

        found = evaluate(subject, self.judges, metrics=metrics_that_need(*NEEDS))
        scores = {
            name: value
            for name, value in found.scores().items()
            if METRICS[name].needs or METRICS[name].better  # levels say little about progress
        }
        for name, value in scores.copy().items():
            target = METRICS[name].target
            if target is not None:
                scores[name + DISTANCE] = abs(value - target)
            ceiling = found.measures[name].intervals.get(RECORDED)
            if ceiling and METRICS[name].needs:
                scores[f"recorded_{name}"] = ceiling.value
        return Evaluated(scores, first.samples, first.sample_rate, path_of(first))


def path_of(speech: "Speech") -> "np.ndarray":
    """The alignment [tokens, frames], 1 where a frame belongs to a token."""
    import numpy as np

    return np.repeat(np.eye(len(speech.durations), dtype=np.float32), speech.durations, axis=1)
