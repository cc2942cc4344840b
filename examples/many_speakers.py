"""Train one voice on many speakers, so that it can clone others, and sample some of them.

    python examples/many_speakers.py --data ./vctk --folder runs/many

The corpus names the speaker of each utterance in its metadata, by its folders, or in the ids: then
--speaker-pattern finds it. A hundred speakers with twenty minutes each are a good start; cloning
needs many speakers more than it needs much of each. Expect about a day on one GPU with 16 GB or
more; nobody has measured it yet. `myxtts demo-voices` shows the same with synthetic speakers on
two CPU cores.
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

TEXT = "Every one of us reads this sentence."


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    XTTSTrainer(settings(args)).train()
    voice = load_voice(args.folder)
    print(f"{len(voice.speakers)} speakers: {', '.join(voice.speakers)}")
    synthesizer = Synthesizer(voice)
    for number, speaker in enumerate(voice.speakers[: args.samples], 1):
        speech = synthesizer.speak(TEXT, speaker=speaker)
        sample = args.folder / f"sample-{number}.wav"
        write_wav(sample, speech.samples, speech.sample_rate)
        print(f"wrote {sample}: {speaker}")


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="the corpus")
    parser.add_argument("--folder", type=Path, default=Path("runs/many-speakers"), help="the run")
    parser.add_argument("--speaker-pattern", help="regular expression for the speaker in an id")
    parser.add_argument("--samples", type=int, default=4, help="how many speakers to sample")
    parser.add_argument("--config", type=Path, help="a settings file to use instead of the example")
    return parser.parse_args(argv)


def settings(args: argparse.Namespace) -> XTTSConfig:
    """The settings of this example, or those of a file."""
    if args.config:
        config = load_config(args.config)
    else:
        config = create_default_config(
            model_size="normal",
            balance_speakers=True,  # a speaker with many recordings is not drawn more often
            utterances_per_speaker=2,  # the contrastive loss needs two of a speaker in a batch
            loudness_lufs=-23.0,  # microphones differ
            max_steps=200_000,
        )
    config.data.dataset_path = str(args.data)
    config.data.speaker_pattern = args.speaker_pattern or config.data.speaker_pattern
    config.training.checkpoint_dir = str(args.folder)
    return config


if __name__ == "__main__":  # preparing starts worker processes, which import this file
    try:
        main()
    except UserError as error:
        sys.exit(f"error: {error}")
