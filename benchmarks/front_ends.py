"""What two ways to read one corpus make of it: alignments, durations, and how well sounds agree.

    myxtts train --data CORPUS --language fa --text-units phonemes --checkpoint-dir FRONT ...
    myxtts train ... --espeak-alone --checkpoint-dir ALONE ...
    python benchmarks/front_ends.py FRONT ALONE

Each voice aligns the recordings of its corpus. `agreement` is how often the phoneme of a held-out
segment is the likeliest for its mean log-mel, by Gaussians with one covariance that were fitted to
the other segments: labels that do not fit what is heard lower it. Stress, length and the notation
of espeak are taken off first, so that all runs have the same phonemes.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from myxtts.bench import timing
from myxtts.cli.terminal import import_tensorflow

MOST_TRAINED = 200  # recordings that Gaussians are fitted to
LEAST = 20  # segments of a phoneme
RIDGE = 0.05


class Findings(NamedTuple):
    """What a run makes of the recordings that it held out."""

    recordings: int
    correlation: float  # of predicted and aligned durations
    off: float  # frames, the mean over tokens
    short: float  # share of sounds of at most two frames
    ezafes: tuple[int, int]  # longer than two frames, and all
    agreement: float
    chance: float  # the share of the most frequent phoneme


def main() -> None:
    asked = _parse()
    import_tensorflow()
    print("command:", " ".join(["python", *sys.argv]))
    print("machine:", timing.describe_machine())
    for run in asked.runs:
        found = judge(run)
        print(
            f"{run}: {found.recordings} recordings; durations: correlation "
            f"{found.correlation:.3f}, off by {found.off:.2f} frames; sounds of at most two frames "
            f"{found.short:.1%}; ezafes heard {found.ezafes[0]} of {found.ezafes[1]}; agreement "
            f"{found.agreement:.1%} (the most frequent phoneme: {found.chance:.1%})"
        )


def judge(run: Path) -> Findings:
    """Align the recordings of a run's corpus by its voice, and judge the held-out ones."""
    from myxtts.audio.mel import log_mel
    from myxtts.checkpoints import load_voice
    from myxtts.config.io import load_config
    from myxtts.data.features.corpora import read_corpora
    from myxtts.evaluation.alignment import (
        BARELY_HEARD,
        align,
        duration_correlation,
        heard_sounds,
    )
    from myxtts.workflows.speaking import read_all

    config, voice = load_config(run / "config.yaml"), load_voice(run)
    corpus, _ = read_corpora(config.data)
    language = config.data.language
    spec = config.data.audio_spec
    found = []
    for part in (corpus.train[:MOST_TRAINED], corpus.val):
        mels = [log_mel(one, spec) for one in read_all([u.audio for u in part], spec.sample_rate)]
        found.append((mels, align(voice, mels, [u.text for u in part], language)))
    (train_mels, train), (mels, held) = found
    predicted = np.concatenate([one.durations for one in held])
    aligned = np.concatenate([one.aligned_durations for one in held])
    texts, durations = [u.text for u in corpus.val], [one.aligned_durations for one in held]
    agreement, chance = _agreement(
        list(_segments(voice, train_mels, train)), list(_segments(voice, mels, held))
    )
    return Findings(
        len(held),
        duration_correlation(held),
        float(np.abs(predicted - aligned).mean()),
        float((aligned <= BARELY_HEARD).mean()),
        heard_sounds(voice, texts, durations, language),
        agreement,
        chance,
    )


def _segments(voice, mels: Sequence[np.ndarray], alignments) -> Iterator[tuple[str, np.ndarray]]:
    """Each phoneme that was heard, without marks, and its mean log-mel."""
    from myxtts.text.languages.persian.inventory import PHONEMES, from_espeak

    for mel, alignment in zip(mels, alignments, strict=True):
        for place, token in enumerate(alignment.tokens):
            phoneme = from_espeak(voice.tokenizer.symbols[token])
            frames = alignment.frame_tokens == place
            if phoneme in PHONEMES and frames.any():
                yield phoneme, mel[frames].mean(axis=0)


def _agreement(
    train: Sequence[tuple[str, np.ndarray]], held: Sequence[tuple[str, np.ndarray]]
) -> tuple[float, float]:
    labels = np.array([name for name, _ in train])
    values = np.array([value for _, value in train])
    names, counts = np.unique(labels, return_counts=True)
    names = names[counts >= LEAST]
    means = np.array([values[labels == name].mean(axis=0) for name in names])
    centred = np.concatenate([values[labels == n] - m for n, m in zip(names, means, strict=True)])
    covariance = np.cov(centred.T) + RIDGE * np.eye(values.shape[1])
    weights = np.linalg.solve(covariance, means.T)  # [mels, phonemes]
    offsets = -0.5 * np.sum(means.T * weights, axis=0)
    wanted = np.array([name for name, _ in held])
    scores = np.array([value for _, value in held]) @ weights + offsets
    right = names[scores.argmax(axis=1)] == wanted
    return float(right.mean()), float(np.unique(wanted, return_counts=True)[1].max() / len(wanted))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("runs", type=Path, nargs="+", help="folders of runs (--checkpoint-dir)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
