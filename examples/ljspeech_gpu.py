"""Train a voice on LJSpeech with one GPU, then let it speak.

    myxtts download ljspeech
    python examples/ljspeech_gpu.py --data data/ljspeech --folder runs/ljspeech

The defaults are meant for one GPU with 12 GB or more and should take some hours to a day; nobody
has measured it yet. On CPUs it would take far too long: run `make demo` there, which has a small
corpus. The features of the 24 hours of speech are computed once and take one to two GB of disk.
Start the same command again after an interruption: it resumes.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from myxtts.audio.io import write_wav
from myxtts.checkpoints import load_voice
from myxtts.config.config import XTTSConfig
from myxtts.config.io import load_config
from myxtts.config.presets import create_default_config
from myxtts.errors import UserError
from myxtts.inference.synthesizer import Synthesizer
from myxtts.training.trainer import XTTSTrainer

TEXT = "The quick brown fox jumps over the lazy dog."


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    reason = XTTSTrainer(settings(args)).train()
    print(f"training ended: {reason}")
    speech = Synthesizer(load_voice(args.folder)).speak(TEXT)
    sample = args.folder / "sample.wav"
    write_wav(sample, speech.samples, speech.sample_rate)
    print(f"wrote {sample}")


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("data/ljspeech"), help="the corpus")
    parser.add_argument("--folder", type=Path, default=Path("runs/ljspeech"), help="the run")
    parser.add_argument("--config", type=Path, help="a settings file to use instead of the example")
    return parser.parse_args(argv)


def settings(args: argparse.Namespace) -> XTTSConfig:
    """The settings of this example, or those of a file."""
    if args.config:
        config = load_config(args.config)
    else:
        config = create_default_config(
            model_size="normal",
            text_units="phonemes",  # needs the extra `phonemes`; English spelling is irregular
            trim_silence=True,
            max_steps=100_000,
            validation_interval=2000,
        )
    config.data.dataset_path = str(args.data)
    config.training.checkpoint_dir = str(args.folder)
    return config


if __name__ == "__main__":  # preparing starts worker processes, which import this file
    try:
        main()
    except UserError as error:
        sys.exit(f"error: {error}")
