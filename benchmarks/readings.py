"""How readings of a temperature differ, and what they cost, on recordings that a voice held out.

    python benchmarks/readings.py CORPUS [--voice DIR] [--sentences 24] [--temperatures 0 1]

For each temperature: words that an ASR gets wrong, spread and slope of F0 and length over those of
the recordings, and how far the lengths of a sentence are apart between two seeds. The voice is the
package's own unless one is given, and the recordings those that its settings hold out.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from myxtts.bench import timing
from myxtts.cli.terminal import import_tensorflow
from myxtts.resources import default_voice

SEEDS = (1, 2)


def main() -> None:
    asked = _parse()
    import_tensorflow()
    from myxtts.checkpoints import load_trainable, load_voice
    from myxtts.checkpoints.voices import ONNX
    from myxtts.evaluation.asr import asr_for
    from myxtts.inference.synthesizer import Synthesizer
    from myxtts.inference.vocoders import AUTO, exported_vocoder
    from myxtts.workflows.evaluate_voice import choose_held_out
    from myxtts.workflows.speaking import read_all

    print("command:", " ".join(["python", *sys.argv]))
    print("machine:", timing.describe_machine())
    voice, vocoder = load_voice(asked.voice), AUTO
    if voice.engine == ONNX:  # an export from before there were readings cannot vary
        vocoder = exported_vocoder(AUTO, voice)
        voice = load_trainable(asked.voice)
    synthesizer = Synthesizer(voice, vocoder, may_be_endless=True)
    factors = voice.model.calibration.pitch_range, voice.model.calibration.length
    widened, longer = (float(one) for one in factors)
    print(f"the predicted pitch is widened by {widened:.3f}, lengths by {longer:.3f}")
    settings = replace(voice.config.data, dataset_path=str(asked.corpus))
    language = voice.languages[0]
    chosen, _ = choose_held_out(settings, synthesizer, language, asked.sentences)
    spec, asr = synthesizer.spec, asr_for(language)
    texts = [one.text for one in chosen]
    recorded = read_all([one.audio for one in chosen], spec.sample_rate)
    natural = _melodies(recorded, spec)
    print("| temperature | WER | F0 spread | F0 slope | length | lengths of two seeds differ by |")
    print("|---|---|---|---|---|---|")
    _print_row("recordings", recorded, natural, natural, texts, asr, spec, language)
    for temperature in asked.temperatures:
        spoken = [
            synthesizer.speak_many(texts, seed=seed, temperature=temperature) for seed in SEEDS
        ]
        said = [[one.samples for one in reading] for reading in spoken]
        lengths = np.array([[len(one.mel) for one in reading] for reading in spoken], float)
        apart = np.abs(np.log(lengths[0] / lengths[1])).mean()
        melodies = _melodies(said[0], spec)
        how = said[0], melodies, natural, texts, asr, spec, language
        _print_row(f"{temperature:g}", *how, apart=f"{100 * apart:.1f} %")


def _print_row(name, said, melodies, natural, texts, asr, spec, language, apart="") -> None:
    from myxtts.evaluation.metrics.intelligibility import error_rates

    heard = asr.transcribe_many([(one, spec.sample_rate) for one in said])
    rates = error_rates(texts, heard, language)
    ratios = np.nansum(melodies, axis=0) / np.nansum(natural, axis=0)
    parts = " | ".join(f"{ratio:.2f}" for ratio in ratios)
    print(f"| {name} | {rates.wer:.3f} | {parts} | {apart} |", flush=True)


def _melodies(said, spec) -> np.ndarray:
    """Spread and slope of F0, and frames with speech, of each sentence."""
    from myxtts.evaluation.metrics.frames import analyse
    from myxtts.evaluation.metrics.melody import f0_dynamics, f0_spread

    found = [analyse(one, spec) for one in said]
    return np.array([(f0_spread(one), f0_dynamics(one), one.is_loud.sum()) for one in found])


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--voice", type=Path, default=default_voice())
    parser.add_argument("--sentences", type=int, default=24)
    parser.add_argument("--temperatures", type=float, nargs="+", default=[0.0, 1.0])
    return parser.parse_args()


if __name__ == "__main__":
    main()
