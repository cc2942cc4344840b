"""Cuts and transcripts of a recording whose cuts and texts are known.

    python benchmarks/slicing.py CORPUS [--clips 10] [--seed 0] [--noise-db -50]
        [--pauses-by auto] [--no-asr]

Clips of a corpus in the layout of LJSpeech are joined, with a random pause of 0.5 to 1.5 s after
each. `myxtts data slice` cuts them apart again, and `myxtts data transcribe` writes the texts. A
join is right if a cut lies in its pause. A cut elsewhere, within a sentence, is an extra one. Words
are compared with those of the corpus over the whole recording, so a wrong cut costs only the words
that it spoils.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import soundfile

from myxtts.audio.io import read_audio
from myxtts.audio.slice_options import AUTO, PAUSES_BY, SliceOptions
from myxtts.data.corpus.corpus import read_corpus
from myxtts.evaluation.metrics.intelligibility import error_rates
from myxtts.workflows.slices import Sliced, slice_recordings
from myxtts.workflows.transcribe import transcribe_corpus

RATE = 22050
PAUSES = (0.5, 1.5)  # seconds
SLACK = 0.3  # seconds that a clip's own silence reaches beyond the pause that was added


def main() -> None:
    args = parse()
    rng = np.random.default_rng(args.seed)
    utterances = read_corpus(args.corpus, val_fraction=0.0).train
    chosen = [utterances[at] for at in rng.choice(len(utterances), args.clips, replace=False)]
    with tempfile.TemporaryDirectory() as folder:
        recording, corpus = Path(folder, "joined.flac"), Path(folder, "corpus")
        pauses = join([str(one.audio) for one in chosen], recording, rng, args.noise_db)
        done = slice_recordings([recording], corpus, SliceOptions(pauses_by=args.pauses_by))
        print(done.summary().split(": ", 1)[1])
        right, extra = count_cuts(done, pauses)
        print(f"cuts: {right} of {len(pauses)} joins are right, {extra} cuts elsewhere")
        if args.asr:
            transcribe_corpus(corpus)
            lines = (corpus / "metadata.csv").read_text(encoding="utf-8").splitlines()
            heard = " ".join(line.split("|")[1] for line in lines)
            rates = error_rates([" ".join(one.text for one in chosen)], [heard], "en")
            print(f"transcripts: WER {rates.wer:.1%}, CER {rates.cer:.1%}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpus", help="English, in the layout of LJSpeech")
    parser.add_argument("--clips", type=int, default=10, help="how many are joined")
    parser.add_argument("--seed", type=int, default=0, help="which ones, and how long pauses are")
    about = "white noise under all of it, in dBFS (default: none, digital silence)"
    parser.add_argument("--noise-db", type=float, help=about)
    about = "what tells a pause (default: auto)"
    parser.add_argument("--pauses-by", choices=PAUSES_BY, default=AUTO, help=about)
    about = "cut only, without transcripts"
    parser.add_argument("--no-asr", action="store_false", dest="asr", help=about)
    return parser.parse_args()


def join(
    paths: list[str], target: Path, rng: np.random.Generator, noise_db: float | None
) -> list[tuple[float, float]]:
    """Write a recording of clips; return where the pauses between them begin and end, in s."""
    parts: list[np.ndarray] = []
    pauses, at = [], 0
    for path in paths:
        clip = read_audio(path, RATE)
        pause = round(RATE * rng.uniform(*PAUSES))
        pauses.append(((at + len(clip)) / RATE, (at + len(clip) + pause) / RATE))
        parts += [clip, np.zeros(pause, np.float32)]
        at += len(clip) + pause
    samples = np.concatenate(parts)
    if noise_db is not None:
        samples += 10.0 ** (noise_db / 20.0) * rng.standard_normal(len(samples))
    soundfile.write(target, np.clip(samples, -1.0, 1.0), RATE)
    return pauses[:-1]  # behind the last clip nothing is joined


def count_cuts(done: Sliced, pauses: list[tuple[float, float]]) -> tuple[int, int]:
    """Count pauses with a cut in them, and cuts that are in none."""
    (plan,) = done.plans
    gaps = [
        (left.end / plan.sample_rate, right.start / plan.sample_rate)
        for left, right in zip(plan.slices, plan.slices[1:], strict=False)
    ]
    inside = [
        [begin - SLACK <= middle <= end + SLACK for begin, end in pauses]
        for middle in (sum(gap) / 2 for gap in gaps)
    ]
    return sum(map(any, zip(*inside, strict=True))), sum(not any(row) for row in inside)


if __name__ == "__main__":
    main()
