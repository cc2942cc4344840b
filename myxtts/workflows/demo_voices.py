"""Train on many synthetic voices, with and without style tokens, and clone unseen ones."""

import json
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from myxtts.config.config import XTTSConfig
from myxtts.evaluation.metrics.table import ENCODER as NEED
from myxtts.evaluation.metrics.table import RECORDED, RESYNTHESIS, SPEECH, metrics_that_need
from myxtts.monitoring.progress import progress
from myxtts.workflows.demo import (
    DemoSettings,
    demo_config,
    informed,
    make_corpus,
    prepare_corpus,
    vocoder_config,
)
from myxtts.workflows.speaking import read_all, resynthesise, speak_recorded
from myxtts.workflows.stages import Announce, Stages
from myxtts.workflows.train import train, train_vocoder

if TYPE_CHECKING:
    from myxtts.demo_corpus.voices import DemoVoice
    from myxtts.evaluation.evaluator import Evaluation
    from myxtts.evaluation.metrics.session import Judges
    from myxtts.inference.synthesizer import Synthesizer

logger = logging.getLogger(__name__)

SEEN, TESTED = 16, 5  # voices that are judged
REFERENCES, EXAMPLES = 3, 6  # recordings to clone from, and to represent a voice
# One conditions the model, the other judges: no encoder should judge its own work.
ENCODER, JUDGE = "resemblyzer", "ecapa_tdnn"
VARIANTS = {"style tokens": True, "plain": False}  # the first is the default
VAL_FRACTION = 0.01
FIGURES = "voices.json"
# The folder of a vocoder for all voices. Its oscillator keeps the pitch of low voices, which
# Griffin-Lim would make hoarse.
VOCODER = "vocoder"


@dataclass(frozen=True, slots=True)
class VoiceScore:
    """How well one voice is kept; similarities are mean cosines to other recordings of it."""

    name: str
    right: float  # share of the model's sentences that are nearest to this voice
    right_copied: float  # the same of the resynthesis: the limit of the vocoder
    similarity: float
    copied_similarity: float
    natural_similarity: float
    nearest_stranger: float  # the greatest mean cosine of the model's sentences to another voice
    pitch_ratio: float  # median pitch over that of the resynthesis; NaN where it has none

    @property
    def share(self) -> float:
        """The similarity as a share of that between recordings of the voice."""
        return self.similarity / self.natural_similarity


@dataclass(frozen=True, eq=False)
class VoicesResult:
    """Scores by variant and by seen or unseen, and the signal that stopped the run, if any."""

    stages: Stages
    found: dict[str, dict[str, list[VoiceScore]]]
    stopped_by: str = ""


def run_demo_voices(settings: DemoSettings, announce: Announce = logger.info) -> VoicesResult:
    """Run all stages; results that are already in the folder are reused."""
    from myxtts.weights import default_folder, get_weights

    stages, found = Stages(announce), {}
    with stages("weights"):
        weights = settings.weights or default_folder()
        encoder, judge = (get_weights(name, weights) for name in (ENCODER, JUDGE))
    with stages("corpus"):
        make_corpus(settings)
    with stages("vocoder"):
        config = vocoder_config(settings, VOCODER, val_fraction=VAL_FRACTION)
        prepare_corpus(config, announce)
        with informed():
            reason = train_vocoder(config)
    if reason.is_interrupted:
        return VoicesResult(stages, found, reason)
    for variant, use_gst in VARIANTS.items():
        config = voices_config(settings, variant, encoder, use_gst)
        with stages(f"prepare and train, {variant}"):
            prepare_corpus(config, announce)
            with informed():
                reason = train(config)
        if reason.is_interrupted:
            return VoicesResult(stages, found, reason)
        with stages(f"speak and judge, {variant}"):
            found[variant] = judge_voices(settings, config, judge)
    write_scores(settings.folder / FIGURES, found)
    return VoicesResult(stages, found)


def voices_config(settings: DemoSettings, variant: str, encoder: Path, use_gst: bool) -> XTTSConfig:
    """The settings of a tiny model that is conditioned on the embeddings of a published encoder.

    Speed perturbation adds two voices to each voice of the corpus. The similarity loss, through
    the encoder, would make a step on a CPU four times as slow.
    """
    return demo_config(
        settings,
        val_fraction=VAL_FRACTION,
        voice_augmentation=2,
        utterances_per_speaker=2,
        speaker_encoder_type=ENCODER,
        speaker_encoder_path=str(encoder),
        use_gst=use_gst,
        voice_similarity_loss_weight=0.0,
        checkpoint_dir=str(settings.folder / variant.replace(" ", "-")),
    )


def judge_voices(
    settings: DemoSettings, config: XTTSConfig, judge: Path
) -> dict[str, list[VoiceScore]]:
    """Speak unseen sentences in voices of the corpus and in cloned ones, and write their pages."""
    from myxtts.checkpoints import load_speaker_encoder, load_voice
    from myxtts.demo_corpus.corpus import choose_voices, unseen_voices
    from myxtts.evaluation.metrics.session import Judges
    from myxtts.evaluation.report.page import write_evaluation
    from myxtts.inference.synthesizer import Synthesizer

    voice = load_voice(config.training.checkpoint_dir)
    synthesizer = Synthesizer(voice, str(settings.folder / VOCODER))
    judges = Judges(embed=load_speaker_encoder(JUDGE, judge).embed_many, encoder=JUDGE)
    seen, unseen = choose_voices("en", settings.speakers)[:SEEN], unseen_voices("en")
    found = {
        "seen": _judge(settings, synthesizer, judges, seen, seen, is_cloned=False),
        "unseen": _judge(settings, synthesizer, judges, unseen, unseen[:TESTED], is_cloned=True),
    }
    for part, evaluation in found.items():
        write_evaluation(Path(config.training.checkpoint_dir) / f"evaluation-{part}", evaluation)
    return {part: score_speakers(evaluation) for part, evaluation in found.items()}


def _judge(
    settings: DemoSettings,
    synthesizer: "Synthesizer",
    judges: "Judges",
    voices: "Sequence[DemoVoice]",
    tested: "Sequence[DemoVoice]",
    is_cloned: bool,
) -> "Evaluation":
    """Judge the speech of the tested voices among all voices."""
    from myxtts.demo_corpus.corpus import record_sentences
    from myxtts.demo_corpus.sentences import held_out_sentences
    from myxtts.evaluation.evaluator import evaluate
    from myxtts.evaluation.metrics.session import Subject

    texts = held_out_sentences("en", settings.sentences + EXAMPLES + REFERENCES)
    count, spec = settings.sentences, synthesizer.spec
    known, sentences = {}, []
    with progress("speaking", "voices") as report:
        for number, voice in enumerate(voices, start=1):
            paths = record_sentences(settings.audio / "recorded", "en", voice, texts)
            known[voice.name] = read_all(paths[count : count + EXAMPLES], spec.sample_rate)
            if voice in tested:
                references = paths[count + EXAMPLES :]
                who = {"reference": references} if is_cloned else {"speaker": voice.name}
                natural = read_all(paths[:count], spec.sample_rate)
                copies = resynthesise(natural, synthesizer.vocoder, spec)
                ceilings = dict(zip(texts, zip(natural, copies, strict=True), strict=False))
                folder = settings.audio / synthesizer.voice.folder.parent.name / voice.name
                sentences += speak_recorded(
                    synthesizer, ceilings, folder, voice.name, f"{voice.name}-", **who
                )
            report(number, len(voices))
    what = f"{synthesizer.voice.folder.parent}: {len(tested)} voices"
    subject = Subject(what, "en", spec, sentences, synthesizer.vocoder.name, known)
    return evaluate(subject, judges, progress, metrics=metrics_that_need(NEED))


def score_speakers(evaluation: "Evaluation") -> list[VoiceScore]:
    """The figures of each speaker's sentences, in their order."""
    names = dict.fromkeys(one.speaker for one in evaluation.subject.sentences)
    return [_score(evaluation, name) for name in names]


def _score(evaluation: "Evaluation", name: str) -> VoiceScore:
    from myxtts.evaluation.metrics.speaker import median_pitch

    subject, found = evaluation.subject, evaluation.speakers
    is_own = np.array([one.speaker == name for one in subject.sentences])
    own = [one for one in subject.sentences if one.speaker == name]
    others = np.delete(found.cosines[SPEECH][is_own].mean(axis=0), found.speakers.index(name))
    pitch = median_pitch([one.spoken for one in own], subject.spec)
    resynthesised_pitch = median_pitch([one.resynthesised for one in own], subject.spec)

    def mean(metric: str, source: str) -> float:
        return float(evaluation.measures[metric].values[source][is_own].mean())

    return VoiceScore(
        name,
        right=mean("right_speaker", SPEECH),
        right_copied=mean("right_speaker", RESYNTHESIS),
        similarity=mean("similarity", SPEECH),
        copied_similarity=mean("similarity", RESYNTHESIS),
        natural_similarity=mean("similarity", RECORDED),
        nearest_stranger=float(others.max()) if len(others) else math.nan,
        pitch_ratio=pitch / resynthesised_pitch,
    )


def mean_score(scores: Sequence[VoiceScore], name: str) -> VoiceScore:
    """The means over voices; the pitch ratio is the mean deviation, as a ratio above 1.

    Voices without a pitch do not count in that ratio (see `pitched`).
    """
    names = [one.name for one in fields(VoiceScore) if one.name not in ("name", "pitch_ratio")]
    means = {field: float(np.mean([getattr(one, field) for one in scores])) for field in names}
    off = [abs(math.log(one.pitch_ratio)) for one in pitched(scores)]
    ratio = math.exp(np.mean(off)) if off else math.nan
    return VoiceScore(name, **means, pitch_ratio=ratio)


def pitched(scores: Sequence[VoiceScore]) -> list[VoiceScore]:
    """The voices that have a pitch."""
    return [one for one in scores if math.isfinite(one.pitch_ratio)]


def verdicts(found: Mapping[str, Mapping[str, Sequence[VoiceScore]]]) -> list[str]:
    """Whether each variant meets its targets."""
    lines = []
    for variant, parts in found.items():
        seen, unseen = (mean_score(parts[part], part) for part in ("seen", "unseen"))
        share = seen.right / seen.right_copied
        for what, value, target in (
            ("seen voices: right, as a share of the resynthesis'", share, 0.95),
            ("unseen voices: share of the natural similarity", unseen.share, 0.8),
            ("unseen voices: right", unseen.right, 0.6),
        ):
            verdict = "met" if value >= target else "NOT met"
            lines.append(f"{variant}, {what}: {value:.3f}, target {target}: {verdict}")
        off, count = seen.pitch_ratio - 1.0, len(pitched(parts["seen"]))
        verdict = "met" if off <= 0.1 else "NOT met"
        if count < len(parts["seen"]):
            verdict += f", but only {count} of {len(parts['seen'])} have a pitch"
        lines.append(f"{variant}, seen voices: pitch off by {off:.1%}, target 10 %: {verdict}")
    return lines


def write_scores(path: Path, found: Mapping[str, Mapping[str, Sequence[VoiceScore]]]) -> None:
    """Write all figures of all voices as JSON, with null for a missing pitch."""
    from myxtts.evaluation.report.figures import without_nan

    rows = {
        variant: {part: [asdict(one) for one in scores] for part, scores in own.items()}
        for variant, own in found.items()
    }
    path.write_text(json.dumps(without_nan(rows), indent=1) + "\n", encoding="utf-8")
