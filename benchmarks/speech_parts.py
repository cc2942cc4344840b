"""Where the CPU time of an exported voice goes: seconds per second of speech, by part.

python benchmarks/speech_parts.py VOICE [--texts 8] [--format mp3]

One thread says texts of ten sentences line by line, as the server does, and encodes them.
"""

import argparse
import random
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from benchmarks.serving import make_text  # noqa: E402
from myxtts.audio.streaming import StreamEncoder  # noqa: E402
from myxtts.audio.threads import single_threaded_blas  # noqa: E402
from myxtts.inference import synthesizer as module  # noqa: E402
from myxtts.inference.synthesizer import Synthesizer  # noqa: E402

SENTENCES, OPENING = 10, 30


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("voice")
    parser.add_argument("--texts", type=int, default=8)
    parser.add_argument("--format", default="wav")
    args = parser.parse_args()
    print("command:", " ".join(["python", *sys.argv]), flush=True)
    synthesizer = Synthesizer.load(args.voice)
    texts = [make_text(SENTENCES, random.Random(number)) for number in range(args.texts)]
    synthesizer.speak(texts[0])
    spent: dict[str, float] = defaultdict(float)
    for name, owner, attribute in (
        ("acoustic model", synthesizer, "_run"),
        ("vocoder", synthesizer.vocoder.model, "generate"),
        ("post-filter", module, "sharpen"),
        ("loudness", module, "set_level"),
    ):
        setattr(owner, attribute, timed(getattr(owner, attribute), spent, name))
    encoder = StreamEncoder(args.format, synthesizer.spec.sample_rate)
    encode = timed(encoder.encode, spent, "encoding")
    plan = timed(lambda text: list(synthesizer.plan(text, OPENING)), spent, "text to tokens")
    began, seconds = time.thread_time(), 0.0
    with single_threaded_blas():
        for text in texts:
            for line in plan(text):
                (speech,) = synthesizer.say([line])
                seconds += speech.seconds
                encode(speech.samples)
    whole = time.thread_time() - began
    spent["all else"] = whole - sum(spent.values())
    for name, took in sorted(spent.items(), key=lambda one: -one[1]):
        print(f"{name:16}{took / seconds:8.4f} {took / whole:6.1%}")
    print(f"{'together':16}{whole / seconds:8.4f}, {seconds:.0f} s of speech")


def timed(function: Callable, spent: dict[str, float], name: str) -> Callable:
    def run(*args: Any, **options: Any) -> Any:
        began = time.thread_time()
        try:
            return function(*args, **options)
        finally:
            spent[name] += time.thread_time() - began

    return run


if __name__ == "__main__":
    main()
