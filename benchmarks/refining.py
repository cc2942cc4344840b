"""What a refiner costs: the training step with and without, and speaking with 0 and 4 steps.

    python benchmarks/refining.py [--layers 4] [--refine-steps 4] [--rounds 5]

Size tiny, untrained weights, one core, in one run. Training steps take synthetic batches, of which
the refiner learns from the first step on; speech goes through the `istft` vocoder.
"""

import argparse
import os
import statistics
from collections.abc import Callable
from functools import partial

import numpy as np
from opening import run_in_work
from step_against import PHASES, build
from training_step import (
    BATCH,
    FRAMES_PER_TOKEN,
    LARGE_BATCH,
    build_model,
    make_batch,
    sentences,
    tiny_config,
)

from myxtts.bench import timing
from myxtts.bench.timing import Target

SLOWER, SPEED = 1.7, 40
COARSE, REFINED, VOCODER = "decoder alone", "refined", "istft"


def main() -> None:
    run_in_work(run, _parse())


def run(_, asked: argparse.Namespace) -> list[Target]:
    """Measure both parts in processes of their own, and print them."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})  # the children inherit it, and so do their threads
    try:
        ratios = timing.in_fresh_process(measure_steps, asked.layers, asked.rounds)
        speech = timing.in_fresh_process(
            measure_speech, asked.layers, asked.refine_steps, asked.rounds
        )
    finally:
        os.sched_setaffinity(0, cores)
    print(f"\nTraining steps, medians of {asked.rounds} rounds; {asked.layers} layers")
    print(timing.table(("batch", "without, CPU-ms", "with, CPU-ms", "ratio"), ratios[0]))
    print(f"\nSpeaking, {asked.refine_steps} refine steps; CPU-seconds per second of speech")
    print(timing.table(("part", "CPU-s / s"), [(k, f"{v:.4f}") for k, v in speech.items()]))
    targets = [
        Target("a step with a refiner over one without", max(ratios[1]), SLOWER),
        Target(
            "times real time on one core, refined",
            1 / (speech[REFINED] + speech[VOCODER]),
            SPEED,
            at_most=False,
        ),
    ]
    for target in targets:
        print(target)
    return targets


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--layers", type=int, default=4, help="of the refiner")
    parser.add_argument("--refine-steps", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=5)
    parser.set_defaults(work=None)
    return parser.parse_args()


def measure_steps(layers: int, rounds: int) -> tuple[list[tuple[str, ...]], list[float]]:
    """The CPU time of a step with and without a refiner, in turn."""
    counts = {"without": 0, "with": layers}
    steps = {name: build(PHASES["early"], {"refiner_layers": n}) for name, n in counts.items()}
    rows, ratios = [], []
    for shape in (BATCH, LARGE_BATCH):
        batch = make_batch(*shape)
        variants = {
            name: partial(cpu_ms, partial(step, batch, 2), 3) for name, step in steps.items()
        }
        timing.interleaved(variants, 1)  # the first run of a shape is not like the others
        found = timing.interleaved(variants, rounds)
        without, refined = (statistics.median(found[name]) for name in ("without", "with"))
        pairs = zip(found["with"], found["without"], strict=True)
        ratios.append(statistics.median(a / b for a, b in pairs))
        what = "{} x {} frames".format(*shape)
        rows.append((what, f"{without:.0f}", f"{refined:.0f}", f"{ratios[-1]:.2f}"))
    return rows, ratios


def measure_speech(layers: int, steps: int, rounds: int) -> dict[str, float]:
    """CPU-seconds per second of speech of each part, a sentence at a time."""
    import tensorflow as tf

    from myxtts.models.vocoders.istft import ISTFTVocoder

    config = tiny_config(refiner_layers=layers)
    model, spec = build_model(config), config.data.audio_spec
    # An untrained model says tokens of any length; this one speaks about as fast as people do.
    out = model.prosody.out
    out.kernel.assign(np.zeros(out.kernel.shape))
    frames = FRAMES_PER_TOKEN / config.model.token_states
    out.bias.assign([np.log(frames), *[0.0] * (out.bias.shape[0] - 1)])
    inputs = sentences(1, config.model.speaker_embedding_dim)
    chance = tf.constant(1), tf.constant(0.7), tf.constant(steps)
    vocoder = ISTFTVocoder.from_settings(ISTFTVocoder.settings_from(config.model, spec))
    vocoder.build()
    mel = model.synthesize(*inputs)["mel"]
    seconds = int(mel.shape[1]) * spec.hop_length / spec.sample_rate
    calls = {
        COARSE: partial(model.synthesize, *inputs),
        REFINED: partial(model.synthesize_refined, *inputs, *chance),
        VOCODER: partial(vocoder.generate, mel[0]),
    }
    variants = {name: partial(cpu_ms, call, 5) for name, call in calls.items()}
    timing.interleaved(variants, 1)
    found = timing.interleaved(variants, rounds)
    return {name: statistics.median(costs) / 1e3 / seconds for name, costs in found.items()}


def cpu_ms(call: Callable, count: int) -> float:
    """CPU-milliseconds of a call, the mean of so many; on a CPU it has ended when it returns."""
    cost = timing.measure(lambda: (call() for _ in range(count)), count)
    return 1e3 * cost.cpu_seconds / cost.batches


if __name__ == "__main__":
    main()
