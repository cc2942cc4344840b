"""Train on many synthetic voices, with and without style tokens, and clone unseen ones."""

import json
import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from myxtts.config.config import XTTSConfig
from myxtts.monitoring.progress import progress
from myxtts.workflows.demo import DemoSettings, informed, make_corpus, prepare_corpus
from myxtts.workflows.speaking import make_sentences, read_all, resynthesise, write_all
from myxtts.workflows.stages import Announce, Stages
from myxtts.workflows.train import train, train_vocoder

if TYPE_CHECKING:
    from myxtts.demo_corpus.voices import DemoVoice
    from myxtts.evaluation.evaluator import Evaluation
    from myxtts.evaluation.metrics.session import Judges, Sentence
    from myxtts.inference.synthesizer import Synthesizer

logger = logging.getLogger(__name__)

SEEN, TESTED = 16, 5  # voices that are judged
REFERENCES, EXAMPLES = 3, 6  # recordings to clone from, and to represent a voice
# The one conditions the model, the other judges: no encoder marks its own work.
ENCODER, JUDGE = "resemblyzer", "ecapa_tdnn"
VARIANTS = {"style tokens": True, "plain": False}  # the first is the default
FIGURES = "voices.json"


@dataclass(frozen=True, slots=True)
class VoiceScore:
    """How much one voice sounds like itself; similarities are cosines to other recordings of it."""

    name: str
    right: float  # share of the model's sentences that are nearest to this voice
    right_copied: float  # the same of the resynthesis: what the vocoder leaves
    similarity: float
    copied_similarity: float
    natural_similarity: float
    nearest_stranger: float  # the greatest mean cosine of the model's sentences to another voice
    pitch_ratio: float  # median pitch over that of the resynthesis; NaN where it has none

    @property
    def share(self) -> float:
        """The similarity, as a share of what recordings of one voice have among each other."""
        return self.similarity / self.natural_similarity


@dataclass(frozen=True, eq=False)
class VoicesResult:
    """Scores by variant and by seen or unseen; the signal that stopped it, if any."""

    stages: Stages
    found: dict[str, dict[str, list[VoiceScore]]]
    stopped_by: str = ""


def run_demo_voices(settings: DemoSettings, announce: Announce = logger.info) -> VoicesResult:
    """Run one stage after the other; what is in the folder already is used again."""
    from myxtts.weights import default_folder

    stages, found = Stages(announce), {}
    with stages("weights"):
        weights = settings.weights or default_folder()
        encoder, judge = (get_public(name, weights) for name in (ENCODER, JUDGE))
    with stages("corpus"):
        make_corpus(settings)
    with stages("vocoder"):
        config = vocoder_config(settings)
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


def get_public(name: str, folder: Path) -> Path:
    """Fetch public weights, unless they are there."""
    from myxtts.weights import get_weights

    return get_weights(name, folder)


def voices_config(settings: DemoSettings, variant: str, encoder: Path, use_gst: bool) -> XTTSConfig:
    """The settings of a tiny model that is conditioned on the embeddings of a published encoder.

    Each voice of the corpus is also heard at two other speeds. The similarity loss, through the
    encoder, would cost four times as much per step on a CPU.
    """
    return _config(
        settings,
        voice_augmentation=2,
        utterances_per_speaker=2,
        speaker_encoder_type=ENCODER,
        speaker_encoder_path=str(encoder),
        use_gst=use_gst,
        voice_similarity_loss_weight=0.0,
        max_steps=settings.steps,
        checkpoint_dir=str(settings.folder / variant.replace(" ", "-")),
    )


def vocoder_config(settings: DemoSettings) -> XTTSConfig:
    """The settings of a light vocoder for all voices of the corpus.

    Griffin-Lim makes low voices hoarse; this one has a clock that keeps their pitch.
    """
    return _config(
        settings,
        vocoder_type="istft",
        stage2_max_steps=settings.vocoder_steps,
        checkpoint_dir=str(vocoder_folder(settings)),
    )


def _config(settings: DemoSettings, **others) -> XTTSConfig:
    from myxtts.config.presets import create_default_config

    common = {"model_size": "tiny", "text_units": "phonemes", "val_fraction": 0.01}
    return create_default_config(str(settings.folder / "corpus"), **common, **others)


def vocoder_folder(settings: DemoSettings) -> Path:
    return settings.folder / "vocoder"


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
    synthesizer = Synthesizer(voice, str(vocoder_folder(settings)))
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
    """Judge the speech of some voices among all of them."""
    from myxtts.demo_corpus.corpus import record_sentences
    from myxtts.demo_corpus.sentences import held_out_sentences
    from myxtts.evaluation import evaluator
    from myxtts.evaluation.metrics import table
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
                sentences += _speak(settings, synthesizer, voice, texts[:count], paths[:count], who)
            report(number, len(voices))
    what = f"{synthesizer.voice.folder.parent}: {len(tested)} voices"
    subject = Subject(what, "en", spec, sentences, synthesizer.vocoder.name, known)
    metrics = table.metrics_that_need(table.ENCODER)
    return evaluator.evaluate(subject, judges, progress, metrics=metrics)


def _speak(
    settings: DemoSettings,
    synthesizer: "Synthesizer",
    voice: "DemoVoice",
    texts: Sequence[str],
    paths: Sequence[Path],
    who: Mapping[str, object],
) -> "list[Sentence]":
    from myxtts.data.corpus.utterance import Utterance

    spec = synthesizer.spec
    spoken = [one.samples for one in synthesizer.speak_many(texts, **who)]
    folder = settings.audio / synthesizer.voice.folder.parent.name / voice.name
    write_all(folder, spoken, spec.sample_rate)
    utterances = [
        Utterance(f"{voice.name}-{number:04d}", path, text, voice.name, "en")
        for number, (text, path) in enumerate(zip(texts, paths, strict=True), start=1)
    ]
    recorded = read_all(paths, spec.sample_rate)
    resynthesised = resynthesise(recorded, synthesizer.vocoder, spec)
    return make_sentences(utterances, spoken, recorded, resynthesised)


def score_speakers(evaluation: "Evaluation") -> list[VoiceScore]:
    """The figures of each speaker's sentences, in their order."""
    from myxtts.evaluation.metrics.speaker import median_pitch
    from myxtts.evaluation.metrics.table import RECORDED, RESYNTHESIS, SPEECH

    sentences, found = evaluation.subject.sentences, evaluation.speakers
    spec, scores = evaluation.subject.spec, []
    for name in dict.fromkeys(one.speaker for one in sentences):
        is_own = np.array([one.speaker == name for one in sentences])
        own = [one for one in sentences if one.speaker == name]
        cosines = {source: values[is_own].mean(axis=0) for source, values in found.cosines.items()}
        number = found.speakers.index(name)
        others = np.delete(cosines[SPEECH], number)
        pitches = [
            median_pitch(part, spec)
            for part in ([one.spoken for one in own], [one.resynthesised for one in own])
        ]
        scores.append(
            VoiceScore(
                name,
                right=float(found.is_right[SPEECH][is_own].mean()),
                right_copied=float(found.is_right[RESYNTHESIS][is_own].mean()),
                similarity=float(cosines[SPEECH][number]),
                copied_similarity=float(cosines[RESYNTHESIS][number]),
                natural_similarity=float(cosines[RECORDED][number]),
                nearest_stranger=float(others.max()) if len(others) else math.nan,
                pitch_ratio=pitches[0] / pitches[1],
            )
        )
    return scores


def mean_score(scores: Sequence[VoiceScore], name: str) -> VoiceScore:
    """The means over voices; of the pitch, how far off it is on average, as a ratio above 1.

    Voices without a pitch do not count there: `pitched` counts the others.
    """
    fields = [
        *("right", "right_copied", "similarity", "copied_similarity"),
        *("natural_similarity", "nearest_stranger"),
    ]
    means = {field: float(np.mean([getattr(one, field) for one in scores])) for field in fields}
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
    """Write every figure of every voice; JSON has null for a pitch that is not there."""
    from myxtts.evaluation.report.figures import without_nan

    rows = {
        variant: {part: [asdict(one) for one in scores] for part, scores in own.items()}
        for variant, own in found.items()
    }
    path.write_text(json.dumps(without_nan(rows), indent=1) + "\n", encoding="utf-8")
