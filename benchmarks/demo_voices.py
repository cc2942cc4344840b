"""Which espeak-ng voices a recogniser understands: word error rates of candidates.

    python benchmarks/demo_voices.py                       # the voices of the built-in corpus
    python benchmarks/demo_voices.py f2:140 steph:150:60   # variant:rate[:pitch] ...

Needs the extras `phonemes` and `eval`. The recogniser is the tiny English model inside the wheel of
moonshine-voice 0.0.68, which needs no network.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import soundfile

from myxtts.data.demo import VOICES, DemoVoice, plan_jobs, speak_jobs
from myxtts.data.demo_sentences import held_out_sentences
from myxtts.evaluation.asr import Moonshine, error_rates


def main() -> None:
    arguments = _parse()
    sentences = held_out_sentences("en", arguments.sentences, arguments.seed)
    recogniser = Moonshine()
    print(f"{len(sentences)} sentences, {recogniser.name}")
    print("| variant | rate | pitch | seconds a sentence | WER | CER |")
    print("|---|---|---|---|---|---|", flush=True)
    for voice in arguments.voices:
        print(_row(voice, sentences, recogniser), flush=True)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("voices", nargs="*", type=_voice, default=VOICES["en"])
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def _voice(text: str) -> DemoVoice:
    variant, rate, *pitch = text.split(":")
    return DemoVoice(variant, int(rate), *map(int, pitch))


def _row(voice: DemoVoice, sentences: Sequence[str], recogniser: Moonshine) -> str:
    with tempfile.TemporaryDirectory() as folder:
        speak_jobs(plan_jobs("en", [voice], sentences), Path(folder))
        paths = sorted(Path(folder).glob("*.wav"))
        recordings = [soundfile.read(path, dtype="float32") for path in paths]
    rates = error_rates(sentences, recogniser.transcribe_many(recordings))
    seconds = sum(len(samples) / rate for samples, rate in recordings) / len(recordings)
    return (
        f"| {voice.variant} | {voice.rate} | {voice.pitch} | {seconds:.2f} "
        f"| {rates.wer:.3f} | {rates.cer:.3f} |"
    )


if __name__ == "__main__":
    main()
