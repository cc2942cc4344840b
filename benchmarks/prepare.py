"""How fast recordings become a published cache, per CPU-second and on two cores.

    python benchmarks/prepare.py [--speech FOLDER] [--hours 6] [--rounds 5]

The corpus is made of the recordings below --speech (any format libsndfile reads), written as 22,050
Hz wav and repeated until there are so many hours; without --speech, of synthetic voiced sounds.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import soundfile

from myxtts.audio.io import read_audio
from myxtts.bench import timing
from myxtts.bench.timing import Target
from myxtts.config.config import DataConfig
from myxtts.data.corpus.utterance import Utterance
from myxtts.data.features.location import locate_cache
from myxtts.data.features.prepare import prepare
from myxtts.monitoring.cores import available_cores
from myxtts.text.tokenizer import Tokenizer

RATE = 22050
TEXT = "A sentence of about the length that people speak while a recording of this length runs."


@dataclass(frozen=True)
class Preparation:
    """One run of `prepare`."""

    audio_seconds: float
    cpu_seconds: float
    wall_seconds: float

    @property
    def times_real_time(self) -> float:
        """Seconds of audio per CPU-second."""
        return self.audio_seconds / self.cpu_seconds


def main() -> None:
    arguments = _parse()
    print("command:", " ".join(["python", *sys.argv]))
    print("machine:", timing.describe_machine(("numpy", "scipy", "soundfile")))
    with tempfile.TemporaryDirectory() as folder:
        bars = run(Path(folder), arguments.speech, arguments.hours, arguments.rounds)
    print(f"\n{sum(bar.is_met for bar in bars)} of {len(bars)} bars met")


def run(folder: Path, speech: Path | None, hours: float, rounds: int) -> list[Target]:
    """Make the corpus, prepare it again and again, print the table, and return the bars."""
    sources = write_sources(folder / "sources", speech)
    utterances = repeat(sources, folder / "corpus", 3600 * hours)
    variants: dict[str, Callable[[], Preparation]] = {
        "mel and tokens, 1 worker": partial(prepare_once, utterances, 1, False),
        "mel and tokens, 2 workers": partial(prepare_once, utterances, 2, False),
        "with pitch, 1 worker": partial(prepare_once, utterances, 1, True),
    }
    results = timing.interleaved(variants, rounds)
    seconds = results["mel and tokens, 1 worker"][0].audio_seconds
    kind = f"recordings of {speech.name}" if speech else "synthetic sounds"
    print(
        f"\n{seconds / 3600:.2f} h of {RATE} Hz wav ({len(utterances):,} utterances, {kind}), "
        f"medians of {rounds} rounds; the CPU time of workers is counted, with their start"
    )
    header = ("prepare", "x real time per CPU-s", "CPU-s", "wall, s", "h/s")
    print(timing.table(header, [_row(*item) for item in results.items()]))
    load = os.getloadavg()[0]
    print(f"load at the end: {load:.1f}; the two-core bar means something on an idle machine only")
    bars = _bars(results)
    for bar in bars:
        print(bar)
    return bars


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--speech", type=Path, help="recordings to repeat")
    parser.add_argument("--hours", type=float, default=6.0)
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


# The corpus


def write_sources(folder: Path, speech: Path | None) -> list[Path]:
    """Real recordings as wav, or a hundred synthetic ones."""
    folder.mkdir(parents=True)
    written = []
    for number, samples in enumerate(_speech(speech) if speech else _sounds()):
        path = folder / f"{number}.wav"
        soundfile.write(path, samples, RATE, subtype="PCM_16")
        written.append(path)
    return written


def repeat(sources: Sequence[Path], folder: Path, seconds: float) -> list[Utterance]:
    """Utterances with a name each, as links to the sources, until they last so long."""
    folder.mkdir(parents=True)
    utterances, total = [], 0.0
    while total < seconds:
        source = sources[len(utterances) % len(sources)]
        path = folder / f"{len(utterances):06d}.wav"
        os.link(source, path)
        duration = soundfile.info(source).duration
        text = TEXT[: max(8, int(15 * duration))]
        utterances.append(Utterance(path.stem, path, text, "speaker", "en"))
        total += duration
    return utterances


def _speech(folder: Path):
    suffixes = (".wav", ".flac", ".ogg", ".mp3")
    for path in sorted(path for path in folder.rglob("*") if path.suffix in suffixes):
        yield read_audio(path, RATE)


def _sounds():
    """Harmonics of a gliding pitch, in syllables, of the lengths of LJSpeech."""
    rng = np.random.default_rng(3)
    for seconds in 1.1 + 9.0 * rng.beta(1.85, 1.195, 100):
        time = np.arange(round(seconds * RATE)) / RATE
        phase = 2 * np.pi * np.cumsum(120 + 20 * np.sin(4 * time)) / RATE
        tone = sum(np.sin(k * phase) / k for k in range(1, 13))
        noise = 0.02 * rng.standard_normal(len(time))
        yield 0.2 * tone * (0.55 - 0.45 * np.cos(20 * time)) + noise


# Measuring


def prepare_once(utterances: Sequence[Utterance], workers: int, with_pitch: bool) -> Preparation:
    """Fill a new cache from nothing to the last published shard."""
    config = DataConfig(with_pitch=with_pitch)
    tokenizer = Tokenizer.build(["en"], "characters")
    with tempfile.TemporaryDirectory(dir=utterances[0].audio.parents[1]) as folder:
        location = locate_cache(Path(folder), config, tokenizer)
        cpu, wall = timing.cpu_seconds(), time.perf_counter()
        report = prepare(utterances, location, workers=workers)
        taken = (timing.cpu_seconds() - cpu, time.perf_counter() - wall)
    if report.rejections:
        raise SystemExit(f"could not prepare {report.rejections[0]}")
    return Preparation(report.audio_seconds, *taken)


def _row(name: str, found: list[Preparation]) -> tuple[str, ...]:
    wall = _median(found, "wall_seconds")
    return (
        name,
        f"{_median(found, 'times_real_time'):,.0f}",
        f"{_median(found, 'cpu_seconds'):.2f}",
        f"{wall:.2f}",
        f"{found[0].audio_seconds / 3600 / wall:.3f}",
    )


def _bars(results: dict[str, list[Preparation]]) -> list[Target]:
    one, two = (results[f"mel and tokens, {count}"] for count in ("1 worker", "2 workers"))
    bars = [
        Target(
            f"prepare, mel and tokens, {name}, seconds of audio per CPU-second",
            _median(found, "times_real_time"),
            1200,
            at_most=False,
        )
        for name, found in (("1 worker", one), ("2 workers", two))
    ]
    speed = _median(results["with pitch, 1 worker"], "times_real_time")
    what = "prepare, mel, pitch and tokens, 1 worker, seconds of audio per CPU-second"
    bars.append(Target(what, speed, 1800, at_most=False))
    if available_cores() < 2:
        print("the speed-up on two cores was not measured: there is one core")
        return bars
    pairs = zip(one, two, strict=True)
    ratio = statistics.median(a.wall_seconds / b.wall_seconds for a, b in pairs)
    return [
        *bars,
        Target("prepare, wall time of 1 worker over 2 workers", ratio, 1.7, at_most=False),
    ]


def _median(found: list[Preparation], name: str) -> float:
    return statistics.median(getattr(one, name) for one in found)


if __name__ == "__main__":
    main()
