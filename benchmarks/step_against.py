"""What a training step and its start cost here, as ratios to another checkout of this project.

    git worktree add ../before COMMIT
    python benchmarks/step_against.py ../before [--rounds 7] [--steps 6] [--size tiny]
        [--phases early late] [--threads 0 1]
        [--settings '{"token_states": 1, "pitch_contour": "token", "adversarial_loss_weight": 0}']

Each checkout has a process of its own, with the default training step of a size: model, losses,
optimizer and discriminator. Each has the threads an operation that it chooses itself, or those that
are given; the other checkout may be this one, `.`, with other threads. They take the same batches
in turn, so what else the machine does meets both alike. `late` steps are those of the second half
of a run, in which the discriminator learns; `early` ones are those before. The losses of the last
steps stand beside the costs: the seeds are the same, the random numbers of dropout need not be.
With --profile it prints instead which operations of this checkout's step take how long, on one
thread.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
BATCHES = ((8, 448), (16, 600))
PRODUCTS = ("Conv", "MatMul", "Einsum")
PHASES = {"early": 1 << 40, "late": 0}  # the step after which the discriminator learns


def main() -> None:
    asked = _parse()
    if asked.serve:
        serve(asked.serve)
        return
    print("command:", " ".join(["python", *sys.argv]))
    if asked.profile:
        profile(asked.settings)
        return
    for phase in asked.phases:
        compare(asked, phase, PHASES[phase])


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("before", type=Path, nargs="?", help="the other checkout")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--steps", type=int, default=6, help="a round")
    parser.add_argument("--size", default="tiny", help="of the model")
    parser.add_argument("--phases", nargs="+", choices=PHASES, default=list(PHASES))
    parser.add_argument(
        "--threads",
        type=int,
        nargs=2,
        default=(None, None),
        help="an operation, before and now (0: as TensorFlow chooses; default: as a checkout does)",
    )
    parser.add_argument("--settings", type=json.loads, default={}, help="of the model, as JSON")
    parser.add_argument("--profile", action="store_true", help="show where a step's time goes")
    parser.add_argument("--serve", type=json.loads, help=argparse.SUPPRESS)
    return parser.parse_args()


def compare(asked: argparse.Namespace, phase: str, start: int) -> None:
    """Start both processes, let them take turns, and print the table."""
    settings = {"model_size": asked.size, **asked.settings}
    order = json.dumps({"start": start, "steps": asked.steps, "settings": settings})
    trees = {"before": asked.before, "now": HERE}
    both = {
        name: Child(tree, order, threads)
        for (name, tree), threads in zip(trees.items(), asked.threads, strict=True)
    }
    begun = {name: child.read() for name, child in both.items()}
    found = {name: [] for name in both}
    for number in range(asked.rounds):
        # Who begins changes: a machine gets slower, and faster, in the course of a round.
        for name in list(both)[:: 1 if number % 2 else -1]:
            found[name].append(both[name].ask())
    for child in both.values():
        child.close()
    print(
        f"\n{phase} steps, medians of {asked.rounds} rounds of {asked.steps} (before, now, ratio)"
    )
    _row("build, trace and take the first step, CPU-s", *(begun[name]["cpu"] for name in both))
    _row("the same, wall s", *(begun[name]["wall"] for name in both))
    _row("operations of the graph", *(begun[name]["operations"] for name in both))
    for at, (size, frames) in enumerate(BATCHES):
        costs = {name: [one["cpu_ms"][at] for one in rounds] for name, rounds in found.items()}
        _pairs(f"{size} x {frames} frames, CPU-ms a step", costs)
        walls = {name: [one["wall_ms"][at] for one in rounds] for name, rounds in found.items()}
        _pairs(f"{size} x {frames} frames, wall ms a step", walls)
    _row("loss of the last step", *(found[name][-1]["loss"] for name in both))


def _pairs(what: str, costs: dict[str, list[float]]) -> None:
    """Medians, and the median of the ratios of rounds that ran next to each other."""
    before, now = costs["before"], costs["now"]
    ratio = statistics.median(b / a for a, b in zip(before, now, strict=True))
    print(f"{what:48}{statistics.median(before):10.1f}{statistics.median(now):10.1f}{ratio:8.2f}")


def _row(what: str, before: float, now: float) -> None:
    print(f"{what:48}{before:10.2f}{now:10.2f}{now / before:8.2f}")


class Child:
    """A process that takes steps with the code of a checkout."""

    def __init__(self, tree: Path, order: str, threads: int | None):
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(tree.resolve()), str(HERE / "benchmarks")]),
            "TF_CPP_MIN_LOG_LEVEL": "2",
        }
        if threads is not None:
            environment["TF_NUM_INTRAOP_THREADS"] = str(threads)
        command = [sys.executable, __file__, "--serve", order]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, env=environment, text=True, cwd=tree, **pipes)

    def read(self) -> dict:
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a process has ended before it was asked to: its error is above")
        return json.loads(line)

    def ask(self) -> dict:
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.read()

    def close(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def serve(order: dict) -> None:
    """Take steps whenever a line comes in, and print what they cost."""
    from training_step import make_batch

    from myxtts.bench import timing

    step, first = None, None

    def begin():
        nonlocal step, first
        step, first = build(order["start"], order["settings"]), make_batch(*BATCHES[0])
        yield step(first, 1).numpy()

    cost = timing.measure(begin, 1)
    graph = step.function.get_concrete_function().graph
    operations = len(graph.get_operations())
    _say(cpu=cost.cpu_seconds, wall=cost.wall_seconds, operations=operations)
    batches, number = [make_batch(*one) for one in BATCHES], 1
    for batch in batches:
        step(batch, number)  # a graph's first run of a shape is not like the others
    for _ in sys.stdin:
        costs = []
        for batch in batches:

            def take(batch=batch):
                nonlocal number
                for _ in range(order["steps"]):
                    number += 1
                    yield step(batch, number).numpy()

            costs.append(timing.measure(take, order["steps"]))
        _say(
            cpu_ms=[1e3 * one.cpu_seconds / one.batches for one in costs],
            wall_ms=[one.ms_per_batch for one in costs],
            loss=step.read(step(batches[0], number))["loss"],
        )


def profile(settings: dict, count: int = 5, rows: int = 24) -> None:
    """Print the milliseconds a step spends in each kind of operation."""
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
    import tensorflow as tf
    from tensorflow.tsl.profiler.protobuf import xplane_pb2
    from training_step import make_batch

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    step, batch = build(PHASES["early"], settings), make_batch(*BATCHES[0])
    for number in (1, 2, 3):
        step(batch, number).numpy()
    space = xplane_pb2.XSpace()
    with tempfile.TemporaryDirectory() as folder:
        with tf.profiler.experimental.Profile(folder):
            for number in range(count):
                step(batch, 4 + number).numpy()
        (found,) = Path(folder).rglob("*.xplane.pb")
        space.ParseFromString(found.read_bytes())
    spent: Counter[str] = Counter()
    for plane in space.planes:
        events = [event for line in plane.lines for event in line.events]
        for event in events:
            name, _, kind = plane.event_metadata[event.metadata_id].name.rpartition(":")
            # Operations are NAME:KIND; what runs them has no name, or one with two colons.
            if name and not name.endswith(":") and "inference" not in kind:
                spent[kind] += event.duration_ps
    total = sum(spent.values())
    products = sum(ps for kind, ps in spent.items() if any(p in kind for p in PRODUCTS))
    for kind, picoseconds in spent.most_common(rows):
        print(f"{kind:44}{picoseconds / 1e9 / count:9.2f} ms")
    print(f"{100 * products / total:.0f} % of {total / 1e9 / count:.0f} ms are products")


def build(start: int, settings: dict | None = None):
    """The step of a size, whose discriminator, if it has one, learns after a step."""
    from training_step import OTHER_BATCHES, build_model, make_batch

    from myxtts import runtime
    from myxtts.config.presets import create_default_config
    from myxtts.training.adversary import Adversary
    from myxtts.training.losses import XTTSLoss
    from myxtts.training.optimizer import build_optimizer
    from myxtts.training.steps import batch_signature, make_train_step

    # Not every checkout has the choices.
    if hasattr(runtime, "spread_operations"):
        runtime.spread_operations(None)
    state = runtime.configure_gpus()
    chosen = {"convolutions": state.convolutions} if hasattr(state, "convolutions") else {}
    config = create_default_config("unused", **{"model_size": "tiny", **(settings or {})})
    adversary = Adversary.from_config(config, total_steps=6000)
    if adversary:
        adversary.start = start
    model = build_model(config)
    # As the trainer has it.
    model.embeds_output &= config.training.voice_similarity_loss_weight > 0.0
    return make_train_step(
        model,
        build_optimizer(config.training, total_steps=6000),
        XTTSLoss.from_config(config),
        batch_signature(make_batch(*OTHER_BATCHES[0]), config.data.n_mels),
        seed=1,
        prior_steps=config.training.alignment_prior_steps,
        adversary=adversary,
        **chosen,
    )


def _say(**found) -> None:
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
