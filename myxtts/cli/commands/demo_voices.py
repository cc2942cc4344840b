"""`myxtts demo-voices`: many synthetic voices, and clones of some that it has never heard."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.cli.commands.demo import add_place_and_counts, check_counts, print_line
from myxtts.cli.terminal import INTERRUPTED, add_command, import_tensorflow
from myxtts.workflows.demo import DemoSettings

if TYPE_CHECKING:
    from myxtts.workflows.demo_voices import VoiceScore, VoicesResult

LEAST = {"speakers": 16, "clauses": 2, "steps": 1, "vocoder_steps": 1, "sentences": 1}


def add(verbs: argparse._SubParsersAction) -> None:
    about = "train on many synthetic voices, with and without style tokens, and clone unseen ones"
    parser = add_command(verbs, "demo-voices", about, run)
    add_place_and_counts(
        parser,
        "runs/demo-voices",
        ("--steps", 5000, "training steps of each model"),
        ("--vocoder-steps", 1500, "training steps of the vocoder"),
        ("--speakers", 48, f"voices of the corpus, at least {LEAST['speakers']}"),
        ("--clauses", 40, "sentences of each speaker in the corpus"),
        ("--sentences", 8, "unseen sentences that are spoken in each voice"),
    )
    about = "folder of the public weights, which are fetched where they are missing "
    about += "(default: MYXTTS_WEIGHTS_DIR, or ./checkpoints)"
    parser.add_argument("--weights", type=Path, metavar="FOLDER", help=about)


def run(args: argparse.Namespace) -> int:
    """Run the demonstration and print its scores."""
    check_counts(args, LEAST)
    import_tensorflow()
    from myxtts.workflows.demo_voices import run_demo_voices

    names = ("folder", *LEAST, "weights")
    settings = DemoSettings(**{name: getattr(args, name) for name in names})
    result = run_demo_voices(settings, print_line)
    if result.stopped_by:
        print(f"stopped by {result.stopped_by}; run the same command to resume")
        return INTERRUPTED
    _print_scores(settings, result)
    return 0


def _print_scores(settings: DemoSettings, result: "VoicesResult") -> None:
    """Print unseen voices one by one, all in the mean, and whether targets are met."""
    from myxtts.evaluation.report.tables import aligned
    from myxtts.workflows.demo_voices import FIGURES, JUDGE, SEEN, mean_score, verdicts

    head = ("model, voice", "right voice", "of resynthesis", "similarity", "of resynthesis")
    rows = [(*head, "natural", "share", "stranger", "pitch ratio")]
    for variant, parts in result.found.items():
        for part, scores in parts.items():
            shown = scores if part == "unseen" else []
            mean = mean_score(scores, f"mean of {len(scores)} {part}")
            rows += [_row(f"{variant}, {one.name}", one) for one in (*shown, mean)]
    print(f"\n{aligned(rows)}")
    print(f"right voice: by {JUDGE}, nearest of {SEEN} seen or of 10 unseen voices")
    for line in verdicts(result.found):
        print(line)
    print()
    print(f"audio   {settings.audio}")
    print(f"figures {settings.folder / FIGURES}")
    print(result.stages.describe())


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
