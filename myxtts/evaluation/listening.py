"""A blind listening test: which clips are compared, in which order, and how loud they are."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from myxtts.audio.cleanup import PEAK_LIMIT, loudness, normalise_loudness

PREFERENCE, RATING = "preference", "rating"  # AB of two systems, MUSHRA-like of more
LEVEL_LUFS = -23.0


@dataclass(frozen=True, slots=True)
class Trial:
    """One sentence by all systems: `clips` are in the order in which the page shows them.

    `sides` has the number of the system that is behind each clip.
    """

    sentence: str
    text: str
    sides: tuple[int, ...]
    clips: tuple[np.ndarray, ...]


@dataclass(frozen=True, slots=True)
class ListeningTest:
    """Trials in the order in which they are heard; all clips have one rate and one loudness."""

    systems: tuple[str, ...]
    trials: tuple[Trial, ...]
    sample_rate: int
    seed: int

    @property
    def design(self) -> str:
        return PREFERENCE if len(self.systems) == 2 else RATING


def make_trials(
    sentences: Sequence[tuple[str, str]], clips: Sequence[Sequence[np.ndarray]], seed: int
) -> tuple[Trial, ...]:
    """Make a trial of each sentence (its id and text), in random order and with random sides.

    `clips` has those of each system, in the order of the sentences.
    """
    rng = np.random.default_rng(seed)
    shuffled = [(at, sentences[at]) for at in rng.permutation(len(sentences)).tolist()]
    sides = balanced_sides(len(sentences), len(clips), rng)
    return tuple(
        Trial(name, text, tuple(row), tuple(clips[system][at] for system in row))
        for (at, (name, text)), row in zip(shuffled, sides.tolist(), strict=True)
    )


def balanced_sides(count: int, systems: int, rng: np.random.Generator) -> np.ndarray:
    """Random orders of the systems, [count, systems]: each is equally often at each place.

    Where `systems` does not divide `count`, two systems differ by one at most. The rows are the
    rotations of random orders, and are shuffled so that none follows from those before it.
    """
    turns = np.arange(systems)
    squares = [
        rng.permutation(rng.permutation(systems)[(turns[:, None] + turns) % systems])
        for _ in range(-(-count // systems))
    ]
    return rng.permutation(np.concatenate(squares)[:count])


def at_one_level(clips: Sequence[Sequence[np.ndarray]], sample_rate: int) -> list[list[np.ndarray]]:
    """Clips at -23 LUFS, or all of them as far below as the one with the highest peaks needs.

    None may be silent.
    """
    highest = [
        loudness(clip, sample_rate) + 20.0 * np.log10(PEAK_LIMIT / np.abs(clip).max())
        for some in clips
        for clip in some
    ]
    level = min(LEVEL_LUFS, *highest)
    return [[normalise_loudness(clip, sample_rate, level) for clip in some] for some in clips]
