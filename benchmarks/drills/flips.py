"""Flipped bits, cut, swapped, emptied and deleted files, in every kind of file that is read back.

A fault is found and repaired, or refused by the file's name, or it has no effect: never are there
other numbers in silence. The kinds of files are found by walking what set_up has made.

What a human writes is left out: metadata, recordings, text and the YAML of --config. A changed
letter in them is another wish, not damage; the part `hostile` attacks them. So are pages
(performance.html, evaluation), TensorBoard's files and locks, which the program writes and never
reads.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.drills import flip_checks, small_runs
from benchmarks.drills.cases import Case, Outcome, Size
from benchmarks.drills.small_runs import CORPUS, RUN, VOCODER

TITLE = "damaged files"

# Single bits are most of what goes wrong unseen.
DAMAGES = ("bit",) * 8 + ("half", "one byte less", "empty", "swapped", "deleted")


@dataclass(frozen=True)
class Target:
    """Files of a kind, and a check that reads them. `count` cases are a full drill."""

    kind: str
    patterns: tuple[str, ...]
    check: flip_checks.Check
    count: int
    world: str = "whole"
    damages: tuple[str, ...] = DAMAGES

    def files(self, folder: Path) -> list[Path]:
        """Relative to the world, so that a case can damage its own copy."""
        root = folder / self.world
        found = {path for pattern in self.patterns for path in root.glob(pattern)}
        return sorted(path.relative_to(root) for path in found if _is_read(path))


_CACHE = f"{CORPUS}/cached_features"
_STORES = (f"{_CACHE}/features-*/*", f"{_CACHE}/tokens-*/*")
_DERIVED = (f"{_CACHE}/waves-*/*", f"{_CACHE}/predicted-*/*", f"{_CACHE}/voices-*/*")
_STATES = f"{RUN}/checkpoints/*/*"

TARGETS = (
    Target("cache, by prepare", _STORES, flip_checks.prepare, 260),
    Target("cache, by verify and fix", _STORES, flip_checks.verify_and_fix, 160),
    Target(
        "cache of voices, by prepare", (f"{_CACHE}/voices-*/*",), flip_checks.prepare_voices, 40
    ),
    Target("derived caches, by verify and fix", _DERIVED, flip_checks.verify_and_fix, 80),
    Target("checkpoint, by resuming from it", (_STATES,), flip_checks.load_state, 180),
    Target(
        "mark of the best",
        ("*/checkpoints/best.json",),
        flip_checks.load_best,
        50,
        # One that is gone was never made; who resumes the run makes it again, as is tried below.
        damages=tuple(damage for damage in DAMAGES if damage != "deleted"),
    ),
    Target(
        "mark of the best, by training on",
        (f"{RUN}/checkpoints/best.json",),
        flip_checks.train_on,
        8,
        world="begun",
        damages=("swapped", "deleted"),
    ),
    Target("voice, by loading it", (f"{RUN}/voice/*",), flip_checks.load_voice, 160),
    Target("vocoder, by loading it", (f"{VOCODER}/vocoder/*",), flip_checks.load_vocoder, 140),
    Target("history of a run", (f"{RUN}/history.jsonl",), flip_checks.read_history, 50),
    Target(
        "weights of a speaker encoder",
        ("encoder.pt",),
        flip_checks.load_encoder,
        40,
        # Any other file is as good: nothing but its own checksums says what it should be.
        damages=tuple(damage for damage in DAMAGES if damage != "swapped"),
    ),
    Target("stamp of the built-in corpus", ("demo/demo.json",), flip_checks.make_demo, 30),
    Target("voice, by speaking", (f"{RUN}/voice/*",), flip_checks.speak, 32),
    Target("vocoder, by speaking", (f"{VOCODER}/vocoder/*",), flip_checks.speak_by_vocoder, 20),
    Target(
        "run and cache, by training on",
        (f"{RUN}/checkpoints/**/*", f"{RUN}/history.jsonl", *_STORES),
        flip_checks.train_on,
        24,
        world="begun",
    ),
    Target(
        "derived caches, by training a vocoder",
        (f"{_CACHE}/waves-*/*", f"{_CACHE}/predicted-*/*"),
        flip_checks.train_vocoder,
        14,
        world="without-vocoder",
    ),
)


def set_up(folder: Path, seed: int, size: Size) -> None:
    """Make a world twice, from two corpora: one to damage, one to take other files from."""
    for name, corpus_seed in (("whole", 2 * seed), ("other", 2 * seed + 1)):
        flip_checks.make_world(folder / name, corpus_seed)
    flip_checks.make_begun(folder / "begun", folder / "whole")
    flip_checks.make_begun(folder / "other-begun", folder / "other")
    flip_checks.write_references(folder)


def cases(folder: Path, seed: int, size: Size) -> Iterator[Case]:
    for target in TARGETS:
        files = target.files(folder)
        if not files:
            raise RuntimeError(f"there is no file of {target.kind}: {', '.join(target.patterns)}")
        for number in range(size.count(target.count, least=min(2, target.count))):
            chance = random.Random(f"{seed} {target.kind} {number}")
            file = files[number % len(files)]
            damage = chance.choice(target.damages)
            name = f"{target.kind} {number}: {damage} in {file}"
            run = partial(_run, folder, target, file, damage, chance)
            yield Case(name, target.kind, run, seconds=300)


def _run(
    folder: Path, target: Target, file: Path, damage: str, chance: random.Random, work: Path
) -> Outcome:
    world = small_runs.copy(folder / target.world, work / "world")
    what = do_damage(world / file, damage, chance, partner_of(folder, target.world, file))
    outcome = target.check(world, file, flip_checks.References(folder))
    return Outcome(outcome.result, f"{what}: {outcome.detail}")


def do_damage(path: Path, damage: str, chance: random.Random, partner: Path | None) -> str:
    """Damage a file in one way, and say how."""
    content = bytearray(path.read_bytes())
    if damage == "swapped" and (partner is None or partner.read_bytes() == bytes(content)):
        damage = "bit"  # there is none, or it is the same
    if damage == "bit" and not content:
        damage = "deleted"
    if damage == "deleted":
        path.unlink()
        return "deleted"
    if damage == "bit":
        at, bit = chance.randrange(len(content)), chance.randrange(8)
        content[at] ^= 1 << bit
        path.write_bytes(content)
        return f"bit {bit} of byte {at}"
    cut = {"half": len(content) // 2, "one byte less": max(0, len(content) - 1), "empty": 0}
    path.write_bytes(partner.read_bytes() if damage == "swapped" else content[: cut[damage]])
    return damage


def partner_of(folder: Path, world: str, file: Path) -> Path | None:
    """The file of the same kind in the other world, whose shards and fingerprints may differ."""
    root = folder / ("other-begun" if world == "begun" else "other")
    if (root / file).is_file():
        return root / file
    kind = file.parent.name.partition("-")[0]
    pattern = f"{kind}-*/*{file.suffix}" if "cached_features" in file.parts else file.name
    found = sorted(root.glob(f"{_CACHE}/{pattern}" if "-*" in pattern else f"**/{pattern}"))
    return found[0] if found else None


def _is_read(path: Path) -> bool:
    return path.is_file() and path.name != ".lock"
