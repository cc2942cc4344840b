"""How busy a device is while features are computed: runtime, and auto from an empty cache.

    python benchmarks/first_epoch.py                           # the built-in corpus
    python benchmarks/first_epoch.py CORPUS --before TREE      # next to the code in another folder
    python benchmarks/first_epoch.py --stretched               # on a machine with other work

A simulated accelerator takes steps that leave the CPU free. Every run is a process of its own, with
an empty cache, and all variants take turns. Other work on the machine makes a device wait, so the
best round counts, and the share of the cores that other processes had is printed beside it; CPU
time hardly depends on them. Stretched steps are longer by as much as other work slows this one: a
round measures that before its first run.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from myxtts.bench import timing
from myxtts.bench.simulated import SimulatedStep
from myxtts.bench.timing import Target
from myxtts.config.config import XTTSConfig
from myxtts.data.batches.training_data import TrainingData
from myxtts.demo_corpus.corpus import make_demo
from myxtts.monitoring.cores import available_cores

ROOT = Path(__file__).resolve().parents[1]
MODES = ("auto", "runtime")
BARS = {"auto": 92.0, "runtime": 35.0}
NOW, YIN, BEFORE = "now", "now, pitch by YIN", "before"


def main() -> None:
    asked = _parse()
    if asked.child:
        print(json.dumps(child(asked)))
        return
    print("command:", " ".join(["python", *sys.argv]))
    print("machine:", timing.describe_machine())
    with tempfile.TemporaryDirectory() as folder:
        corpus = asked.corpus or make_demo(Path(folder) / "corpus", speakers=1, clauses=400)
        bars = run(Path(corpus), asked)
    print(f"\n{sum(bool(bar.is_met) for bar in bars)} of {len(bars)} bars met")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpus", type=Path, nargs="?", help="the built-in corpus if there is none")
    parser.add_argument("--before", type=Path, help="a folder with the package to compare with")
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    parser.add_argument("--yin", action="store_true", help="also with the pitch of older caches")
    parser.add_argument("--step-ms", type=float, default=20.0)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--batches", type=int, default=200, help="or two epochs, if that is more")
    parser.add_argument("--stretched", action="store_true", help="longer steps, by the load")
    parser.add_argument("--trace-seconds", type=float, default=0.0, help="of the first step")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    parser.add_argument("--pitch-method", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


def run(corpus: Path, asked: argparse.Namespace) -> list[Target]:
    """Measure every variant in turn, print the table, and return the bars."""
    trees = {NOW: ROOT}
    if asked.yin:
        trees[YIN] = ROOT
    if asked.before:
        trees[BEFORE] = asked.before
    results: dict[tuple[str, str], list] = {
        (name, mode): [] for mode in asked.modes for name in trees
    }
    for number in range(asked.rounds):
        step_ms = asked.step_ms / (_share() if asked.stretched else 1.0)
        for (name, mode), found in results.items():
            found.append(_in_tree(trees[name], name, mode, corpus, asked, step_ms))
            print(f"round {number + 1}, steps of {step_ms:.0f} ms: {mode}, {name}: {found[-1]}")
    some = next(iter(results.values()))[0]
    print(
        f"\n{corpus.name}: {some['epoch_batches']} batches of {asked.batch_size} an epoch, "
        f"{some['audio_ms'] / 1e3:.0f} s of speech in each; {some['batches']} batches of "
        f"{asked.step_ms:g} ms{', stretched' if asked.stretched else ''}, {asked.rounds} rounds"
    )
    header = ("mode", "code", "busy", "first epoch", "rounds", "others had", "at most, by CPU time")
    header += ("CPU-ms a batch", "of the first epoch", "page faults a batch", "first batch, s")
    rows = [_row(mode, name, found, asked.step_ms) for (name, mode), found in results.items()]
    print(timing.table(header, rows))
    print(
        "busy and first epoch: the best round; CPU, faults and first batch: medians; at most: if "
        f"all {available_cores()} cores computed from the first step on, and nothing else"
    )
    bars = []
    for mode in asked.modes:
        found, least = results[NOW, mode], BARS[mode]
        before = f"; before: {_best(results[BEFORE, mode]):.1f} %" if asked.before else ""
        what = f"{mode} from an empty cache, busy at {asked.step_ms:g} ms"
        if asked.stretched:  # a load changes while it is measured: good for a comparison only
            measured, note = None, f"steps were stretched ({_best(found):.1f} %{before})"
        else:
            measured, note = _best(found), before.removeprefix("; ")
        bars.append(Target(what, measured, least, at_most=False, unit="%", note=note))
        print(bars[-1])
    return bars


def _in_tree(
    tree: Path, name: str, mode: str, corpus: Path, asked: argparse.Namespace, step_ms: float
) -> dict[str, float]:
    """What a process of the package in a folder finds."""
    command = [sys.executable, __file__, str(corpus.resolve()), "--child", mode]
    for option in ("batch_size", "batches", "trace_seconds"):
        command += [f"--{option.replace('_', '-')}", str(getattr(asked, option))]
    command += ["--step-ms", str(step_ms)]
    if name == YIN:
        command += ["--pitch-method", "yin"]
    environment = os.environ | {"PYTHONPATH": str(tree.resolve()), "TF_CPP_MIN_LOG_LEVEL": "2"}
    answer = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return json.loads(answer.stdout.splitlines()[-1])


def _share() -> float:
    """The share of the cores that is left to a process which wants all of them."""
    spin = "import time; end = time.time() + 3\nwhile time.time() < end: pass\n"
    spin += "print(time.process_time() / 3)"
    command = [sys.executable, "-c", spin]
    cores = range(available_cores())
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in cores]
    return statistics.mean(float(one.communicate()[0]) for one in running)


def child(asked: argparse.Namespace) -> dict[str, float]:
    """Train through a mode as the loop does, a batch ahead of the device."""
    import tensorflow as tf

    tf.constant(0.0).numpy()  # TensorFlow starts before any clock runs
    with tempfile.TemporaryDirectory() as folder:
        chosen = {"pitch_method": asked.pitch_method} if asked.pitch_method else {}
        config = XTTSConfig().replace(
            data_path=str(asked.corpus),
            cache_dir=folder,
            batch_size=asked.batch_size,
            preprocessing_mode=asked.child,
            **chosen,
        )
        data = TrainingData(config)
        plan = data.train.plan(data.batch_options)
        frames = data.train.plan_lengths[timing.planned(plan)].sum()
        spec = data.train.location.settings.spec
        found = _train_through(data, len(plan), asked)
    return found | {"audio_ms": 1e3 * spec.seconds(float(frames)) / len(plan)}


def _train_through(
    data: TrainingData, epoch_batches: int, asked: argparse.Namespace
) -> dict[str, float]:
    step, before = SimulatedStep(asked.step_ms), None
    batches = max(asked.batches, 2 * epoch_batches)
    found: dict[str, float] = {"batches": batches, "epoch_batches": epoch_batches}
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    wall, own, machine = time.perf_counter(), time.process_time(), _machine_seconds()
    with closing(data.stream()) as stream:
        for number, (epoch, _, _) in enumerate(stream, 1):
            if number == 1:
                found["first_batch"] = time.perf_counter() - wall
                own += _occupied(asked.trace_seconds)
            if epoch == 1 and "epoch_busy" not in found:
                found["epoch_busy"] = _busy(step)
                found["epoch_cpu_ms"] = 1e3 * (time.process_time() - own) / epoch_batches
            handle = step(None, number)
            if before is not None:
                step.read(before)
            before = handle
            if number == batches:
                break
        step.read(before)
    own, machine = time.process_time() - own, _machine_seconds() - machine
    cores = (time.perf_counter() - wall) * available_cores()
    found["faults"] = (resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults) / batches
    found["cpu_ms"] = 1e3 * own / batches
    return found | {"busy": _busy(step), "others": 100 * (machine - own) / cores}


def _busy(step: SimulatedStep) -> float:
    """The device's utilisation, which the package has not always computed itself."""
    return 100 * step.busy_seconds / (step.busy_seconds + step.idle_seconds)


def _occupied(seconds: float) -> float:
    """Run Python as tracing a step does, with its lock in hand; return the CPU time of that."""
    own, end = time.thread_time(), time.perf_counter() + seconds
    while time.perf_counter() < end:
        sum(range(1000))
    return time.thread_time() - own


def _machine_seconds() -> float:
    """CPU time of all processes of the machine."""
    fields = Path("/proc/stat").read_text().split("\n")[0].split()[1:]
    user, nice, system, _, _, irq, soft_irq, steal = map(int, fields[:8])
    return (user + nice + system + irq + soft_irq + steal) / os.sysconf("SC_CLK_TCK")


def _best(found: list[dict[str, float]]) -> float:
    return max(one["busy"] for one in found)


def _at_most(mode: str, seen: dict[str, float], step_ms: float) -> float:
    """How busy a device can be with the CPU time that was spent, on cores without other work."""
    part = "epoch_" if mode == "auto" else ""  # what auto reads later costs next to nothing
    batches = seen[f"{part}batches"]
    late_ms = max(0.0, batches * (seen[f"{part}cpu_ms"] / available_cores() - step_ms))
    return 100 / (1 + late_ms / (seen["batches"] * step_ms))


def _row(mode: str, name: str, found: list[dict[str, float]], step_ms: float) -> tuple[str, ...]:
    best = max(found, key=lambda one: one["busy"])
    medians = {key: statistics.median(one[key] for one in found) for key in best}
    return (
        mode,
        name,
        f"{best['busy']:.1f} %",
        f"{max(one['epoch_busy'] for one in found):.1f} %",
        " ".join(f"{one['busy']:.0f}" for one in found),
        f"{best['others']:.0f} %",
        f"{_at_most(mode, medians, step_ms):.1f} %",
        f"{medians['cpu_ms']:.1f}",
        f"{medians['epoch_cpu_ms']:.1f}",
        f"{medians['faults']:,.0f}",
        f"{medians['first_batch']:.2f}",
    )


if __name__ == "__main__":
    main()
