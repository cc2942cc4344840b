"""`myxtts demo-voices`: many synthetic voices, and clones of some that it has never heard."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.cli.commands.demo import (
    Clock,
    add_place_and_counts,
    check_counts,
    informed,
    is_stopped,
    make_corpus,
    prepare,
    print_table,
    train,
)
from myxtts.cli.terminal import INTERRUPTED, add_command, import_tensorflow
from myxtts.config.config import XTTSConfig
from myxtts.monitoring.progress import progress

if TYPE_CHECKING:
    import numpy as np

    from myxtts.demo_corpus.voices import DemoVoice
    from myxtts.evaluation.metrics.speaker import VoiceScore
    from myxtts.inference.synthesizer import Synthesizer

SPEAKERS, CLAUSES, STEPS, VOCODER_STEPS, SENTENCES = 48, 40, 5000, 1500, 8
SEEN, TESTED = 16, 5  # voices that are judged
LEAST = {"speakers": SEEN, "clauses": 2, "steps": 1, "vocoder_steps": 1, "sentences": 1}
REFERENCES, EXAMPLES = 3, 6  # recordings to clone from, and to know a voice by
# The one describes voices to the model, the other judges: no encoder marks its own work.
ENCODER, JUDGE = "resemblyzer", "ecapa_tdnn"
VARIANTS = {"style tokens": True, "plain": False}  # the first is the default


def add(verbs: argparse._SubParsersAction) -> None:
    about = "train on many synthetic voices, with and without style tokens, and clone unseen ones"
    parser = add_command(verbs, "demo-voices", about, run)
    add_place_and_counts(
        parser,
        "runs/demo-voices",
        ("--steps", STEPS, "training steps of each model"),
        ("--vocoder-steps", VOCODER_STEPS, "training steps of the vocoder"),
        ("--speakers", SPEAKERS, f"how many voices the corpus has, at least {SEEN}"),
        ("--clauses", CLAUSES, "sentences of each speaker in the corpus"),
        ("--sentences", SENTENCES, "how many unseen sentences are said in each voice"),
    )
    where = "where public weights are, or are fetched to (default: MYXTTS_WEIGHTS_DIR, "
    where += "or ./checkpoints)"
    parser.add_argument("--weights", type=Path, metavar="FOLDER", help=where)


def run(args: argparse.Namespace) -> int:
    """Do one stage after the other, and print who is heard."""
    from myxtts.weights import default_folder

    check_counts(args, LEAST)
    args.language = "en"
    clock = Clock()
    import_tensorflow()
    with clock.stage("weights"):
        weights = args.weights or default_folder()
        encoder, judge = (get_public(name, weights) for name in (ENCODER, JUDGE))
    with clock.stage("corpus"):
        make_corpus(args)
    with clock.stage("vocoder"):
        reason = train_vocoder(args)
    if is_stopped(reason):
        return INTERRUPTED
    found = {}
    for variant, use_gst in VARIANTS.items():
        config = voices_config(args, variant, encoder, use_gst)
        with clock.stage(f"prepare and train, {variant}"):
            prepare(config)
            reason = train(config)
        if is_stopped(reason):
            return INTERRUPTED
        with clock.stage(f"speak and judge, {variant}"):
            found[variant] = judge_voices(args, config, judge)
    write_outcome(args.folder / "voices.json", found)
    print_outcome(args, found)
    clock.print()
    return 0


def get_public(name: str, folder: Path) -> Path:
    """Fetch public weights, unless they are there."""
    from myxtts.weights import get_weights

    return get_weights(name, folder)


def voices_config(
    args: argparse.Namespace, variant: str, encoder: Path, use_gst: bool
) -> XTTSConfig:
    """Return the settings of a tiny model that a published encoder tells whose voice to take.

    Each voice of the corpus also speaks at two other paces. Listening to itself through the
    encoder would cost four times as much per step on a CPU.
    """
    from myxtts.config.presets import create_default_config

    return create_default_config(
        str(args.folder / "corpus"),
        model_size="tiny",
        text_units="phonemes",
        val_fraction=0.01,
        voice_augmentation=2,
        utterances_per_speaker=2,
        speaker_encoder_type=ENCODER,
        speaker_encoder_path=str(encoder),
        use_gst=use_gst,
        voice_similarity_loss_weight=0.0,
        max_steps=args.steps,
        checkpoint_dir=str(args.folder / variant.replace(" ", "-")),
    )


def vocoder_folder(args: argparse.Namespace) -> Path:
    return args.folder / "vocoder"


def train_vocoder(args: argparse.Namespace) -> str:
    """Train a light vocoder on all voices of the corpus, and say why it ended.

    Griffin-Lim makes low voices hoarse; this one has a clock that keeps their pitch.
    """
    from myxtts.config.presets import create_default_config
    from myxtts.workflows.train import train_vocoder as train_it

    config = create_default_config(
        str(args.folder / "corpus"),
        model_size="tiny",
        text_units="phonemes",
        val_fraction=0.01,
        vocoder_type="istft",
        stage2_max_steps=args.vocoder_steps,
        checkpoint_dir=str(vocoder_folder(args)),
    )
    prepare(config)
    with informed():
        return train_it(config)


def judge_voices(
    args: argparse.Namespace, config: XTTSConfig, judge: Path
) -> "dict[str, list[VoiceScore]]":
    """Say unseen sentences in voices of the corpus and in voices that are not, and tell them."""
    from myxtts.checkpoints import load_speaker_encoder, load_voice
    from myxtts.demo_corpus.corpus import choose_voices, unseen_voices
    from myxtts.inference.synthesizer import Synthesizer

    voice = load_voice(config.training.checkpoint_dir)
    synthesizer = Synthesizer(voice, str(vocoder_folder(args)))
    embed = load_speaker_encoder(JUDGE, judge).embed_many
    seen, unseen = choose_voices("en", args.speakers)[:SEEN], unseen_voices("en")
    return {
        "seen": _judge(args, synthesizer, embed, seen, seen, by_reference=False),
        "unseen": _judge(args, synthesizer, embed, unseen, unseen[:TESTED], by_reference=True),
    }


def _judge(
    args: argparse.Namespace,
    synthesizer: "Synthesizer",
    embed,
    voices: "Sequence[DemoVoice]",
    tested: "Sequence[DemoVoice]",
    by_reference: bool,
) -> "list[VoiceScore]":
    """Score some voices among all of them."""
    from myxtts.demo_corpus.sentences import held_out_sentences
    from myxtts.evaluation.metrics.speaker import VoiceTrial, score_voices

    sentences = held_out_sentences("en", args.sentences + EXAMPLES + REFERENCES)
    said = sentences[: args.sentences]
    known, trials = {}, []
    with progress("speaking", "voices") as report:
        for number, voice in enumerate(voices, start=1):
            paths = record(args, voice, sentences)
            own, examples, references = (
                paths[: len(said)],
                paths[len(said) : len(said) + EXAMPLES],
                paths[len(said) + EXAMPLES :],
            )
            known[voice.name] = _read(examples, synthesizer)
            if voice in tested:
                manner = {"reference": references} if by_reference else {"speaker": voice.name}
                spoken = [one.samples for one in synthesizer.speak_many(said, **manner)]
                _write(args, synthesizer, voice.name, spoken)
                recorded = _read(own, synthesizer)
                copied = copies(recorded, synthesizer)
                trials.append(VoiceTrial(voice.name, spoken, recorded, copied))
            report(number, len(voices))
    return score_voices(trials, known, embed, synthesizer.spec)


def record(args: argparse.Namespace, voice: "DemoVoice", sentences: Sequence[str]) -> "list[Path]":
    """Let a synthetic voice itself say sentences."""
    from myxtts.demo_corpus.corpus import record_sentences

    folder = args.folder / "audio" / "recorded"
    return record_sentences(folder, "en", voice, sentences)


def copies(recorded: "Sequence[np.ndarray]", synthesizer: "Synthesizer") -> "list[np.ndarray]":
    """Return recordings as the vocoder makes them from their log-mels."""
    from myxtts.audio.mel import log_mel

    spec, vocode = synthesizer.spec, synthesizer.vocoder
    return [vocode(log_mel(samples, spec), spec, 0) for samples in recorded]


def write_outcome(path: Path, found: "dict[str, dict[str, list[VoiceScore]]]") -> None:
    """Write every figure of every voice."""
    rows = {
        variant: {part: [_figures(one) for one in scores] for part, scores in parts.items()}
        for variant, parts in found.items()
    }
    path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def _figures(score: "VoiceScore") -> dict[str, str | float | None]:
    """Its fields; JSON has no word for a pitch that is not there."""
    values = asdict(score)
    return {name: None if value != value else value for name, value in values.items()}


def print_outcome(
    args: argparse.Namespace, found: "dict[str, dict[str, list[VoiceScore]]]"
) -> None:
    """Print unseen voices one by one, all in the mean, and what was hoped for."""
    from myxtts.evaluation.metrics.speaker import mean_score, pitched

    header = ("model, voice", "right voice", "of copies", "similarity", "of copies", "natural")
    rows = [(*header, "share", "stranger", "pitch ratio")]
    for variant, parts in found.items():
        for part, scores in parts.items():
            shown = scores if part == "unseen" else []
            mean = mean_score(scores, f"mean of {len(scores)} {part}")
            rows += [_row(f"{variant}, {one.name}", one) for one in (*shown, mean)]
    print()
    print_table(rows)
    print(f"right voice: by {JUDGE}, nearest of {SEEN} seen or of 10 unseen voices")
    for variant, parts in found.items():
        seen, unseen = (mean_score(parts[part], part) for part in ("seen", "unseen"))
        for what, value, hoped in (
            ("seen voices: right, as a share of the copies'", seen.right / seen.right_copied, 0.95),
            ("unseen voices: share of the natural similarity", unseen.share, 0.8),
            ("unseen voices: right", unseen.right, 0.6),
        ):
            verdict = "as hoped" if value >= hoped else "LESS than hoped"
            print(f"{variant}, {what}: {value:.3f}, hoped for {hoped}: {verdict}")
        off = seen.pitch_ratio - 1.0
        heard = len(pitched(parts["seen"]))
        verdict = "MORE than hoped" if not off <= 0.1 else "as hoped"
        if heard < len(parts["seen"]):
            verdict += f", but a pitch is heard in {heard} of {len(parts['seen'])} only"
        print(f"{variant}, seen voices: pitch off by {off:.1%}, hoped for 10 %: {verdict}")
    print()
    print(f"audio   {args.folder / 'audio'}")
    print(f"figures {args.folder / 'voices.json'}")


def _row(name: str, score: "VoiceScore") -> tuple[str, ...]:
    return (
        name,
        f"{score.right:.2f}",
        f"{score.right_copied:.2f}",
        f"{score.similarity:.3f}",
        f"{score.copied_similarity:.3f}",
        f"{score.natural_similarity:.3f}",
        f"{score.share:.2f}",
        f"{score.nearest_stranger:.3f}",
        f"{score.pitch_ratio:.3f}",
    )


def _read(paths: "Sequence[Path]", synthesizer: "Synthesizer") -> "list[np.ndarray]":
    from myxtts.audio.io import read_audio

    return [read_audio(path, synthesizer.spec.sample_rate) for path in paths]


def _write(args, synthesizer: "Synthesizer", name: str, spoken: "Sequence[np.ndarray]") -> None:
    from myxtts.cli.commands.demo import write_all

    variant = synthesizer.voice.folder.parent.name
    folder = args.folder / "audio" / variant / name
    write_all(folder, spoken, synthesizer.spec.sample_rate)
