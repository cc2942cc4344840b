"""Add a speaker to a trained voice from a few minutes of recordings, then let that speaker talk.

    python examples/finetune.py --voice runs/many-speakers --data ./me --text "This is me."

Five minutes of clean speech, cut into sentences with their texts, are enough to begin with. The run
is short, a thousand steps by default: minutes on a GPU, hours on CPUs, depending on the size of the
voice. The voice keeps its other speakers. Clone your own voice, or that of somebody who has agreed.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from myxtts.audio.io import write_wav
from myxtts.checkpoints import load_voice
from myxtts.cli.main import main as myxtts
from myxtts.errors import UserError
from myxtts.inference.synthesizer import Synthesizer


def main(argv: Sequence[str] | None = None) -> int:
    args = parse_args(argv)
    words = ["finetune", "--voice", args.voice, "--data", args.data]
    words += ["--checkpoint-dir", args.folder]
    if args.config:
        words += ["--config", args.config]
    if code := myxtts([str(word) for word in words]):
        return code  # the reason has been printed
    voice = load_voice(args.folder)
    speaker = args.speaker or voice.speakers[-1]  # new speakers come last
    speech = Synthesizer(voice).speak(args.text, speaker=speaker)
    write_wav(args.output, speech.samples, speech.sample_rate)
    print(f"wrote {args.output}: {speaker}")
    return 0


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--voice", type=Path, required=True, help="the voice, or its run")
    parser.add_argument("--data", type=Path, required=True, help="recordings of the new speaker")
    parser.add_argument("--folder", type=Path, default=Path("runs/finetuned"), help="the run")
    parser.add_argument("--text", default="Hello, this is my new voice.", help="what to say")
    parser.add_argument("--speaker", help="who says it (default: the newest speaker)")
    parser.add_argument("--output", type=Path, default=Path("finetuned.wav"), help="the wav file")
    parser.add_argument("--config", type=Path, help="a settings file for the run")
    return parser.parse_args(argv)


if __name__ == "__main__":  # preparing starts worker processes, which import this file
    try:
        sys.exit(main())
    except UserError as error:
        sys.exit(f"error: {error}")
