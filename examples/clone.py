"""Clone a voice from a reference recording, without any training.

    python examples/clone.py --voice runs/many-speakers --reference someone.wav --text "Hello."

Ten seconds to a minute of clean speech make a good reference; several files are taken together. It
runs on any machine, in about real time on a few CPU cores once the model is loaded. How alike the
clone is depends on how many speakers the voice was trained on: of one speaker it learns no other.
Clone your own voice, or that of somebody who has agreed.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from myxtts.audio.io import write_wav
from myxtts.checkpoints import load_voice
from myxtts.errors import UserError
from myxtts.inference.synthesizer import Synthesizer


def main(argv: Sequence[str] | None = None) -> None:
    args = parse_args(argv)
    synthesizer = Synthesizer(load_voice(args.voice), args.vocoder)
    speech = synthesizer.speak(
        args.text,
        reference=args.reference,
        language=args.language,
        speaking_rate=args.speaking_rate,
    )
    write_wav(args.output, speech.samples, speech.sample_rate)
    print(f"wrote {args.output}: {speech.seconds:.1f} s")


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--voice", type=Path, required=True, help="the voice, or its run")
    parser.add_argument("--reference", type=Path, nargs="+", required=True, help="recordings")
    parser.add_argument("--text", default="Hello, this is your voice.", help="what to say")
    parser.add_argument("--language", help="the language of the text (default: the voice's first)")
    parser.add_argument("--speaking-rate", type=float, default=1.0, help="2 is twice as fast")
    parser.add_argument("--vocoder", default="griffin_lim", help="a vocoder's name or its folder")
    parser.add_argument("--output", type=Path, default=Path("cloned.wav"), help="the wav file")
    return parser.parse_args(argv)


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(f"error: {error}")
