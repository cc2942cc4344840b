"""`myxtts demo-voices`: many synthetic voices, and clones of some that it was not trained on."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.cli.commands.demo import Counts, add_place_and_counts, demonstrate
from myxtts.cli.terminal import add_command
from myxtts.workflows.demo import DemoSettings

if TYPE_CHECKING:
    from myxtts.workflows.demo_voices import VoicesResult

COUNTS: Counts = {
    "steps": (5000, 1, "training steps of each model"),
    "vocoder_steps": (1500, 1, "training steps of the vocoder"),
    "speakers": (48, 16, "voices of the corpus, at least 16"),
    "clauses": (40, 2, "sentences of each speaker in the corpus"),
    "sentences": (8, 1, "unseen sentences that are spoken in each voice"),
}
# The columns of the table: head, what of a score it shows, digits.
COLUMNS = (
    ("right voice", "right", 2),
    ("of resynthesis", "right_copied", 2),
    ("similarity", "similarity", 3),
    ("of resynthesis", "copied_similarity", 3),
    ("natural", "natural_similarity", 3),
    ("share", "share", 2),
    ("stranger", "nearest_stranger", 3),
    ("pitch ratio", "pitch_ratio", 3),
)


def add(verbs: argparse._SubParsersAction) -> None:
    about = "train on many synthetic voices, with and without style tokens, and clone unseen ones"
    parser = add_command(verbs, "demo-voices", about, run)
    add_place_and_counts(parser, "runs/demo-voices", COUNTS)
    about = "folder of the public weights, which are fetched where they are missing "
    about += "(default: MYXTTS_WEIGHTS_DIR, or ./checkpoints)"
    parser.add_argument("--weights", type=Path, metavar="FOLDER", help=about)


def run(args: argparse.Namespace) -> int:
    from myxtts.workflows.demo_voices import run_demo_voices

    return demonstrate(args, COUNTS, run_demo_voices, _print_scores)


def _print_scores(settings: DemoSettings, result: "VoicesResult") -> None:
    """Print unseen voices one by one, all in the mean, and whether targets are met."""
    from myxtts.evaluation.report.tables import aligned
    from myxtts.workflows.demo_voices import FIGURES, JUDGE, SEEN, mean_score, verdicts

    rows = [("model, voice", *(head for head, _, _ in COLUMNS))]
    for variant, parts in result.found.items():
        for part, scores in parts.items():
            shown = scores if part == "unseen" else []
            for one in (*shown, mean_score(scores, f"mean of {len(scores)} {part}")):
                cells = (f"{getattr(one, name):.{digits}f}" for _, name, digits in COLUMNS)
                rows.append((f"{variant}, {one.name}", *cells))
    print(f"\n{aligned(rows)}")
    print(f"right voice: by {JUDGE}, nearest of {SEEN} seen or of 10 unseen voices")
    for line in verdicts(result.found):
        print(line)
    print(f"\naudio   {settings.audio}")
    print(f"figures {settings.folder / FIGURES}")
