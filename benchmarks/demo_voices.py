"""Which espeak-ng voices a recogniser understands: word error rates of candidates.

    python benchmarks/demo_voices.py                       # the voices of the built-in corpus
    python benchmarks/demo_voices.py f2:140 steph:150:60   # variant:rate[:pitch] ...

Needs the extras `phonemes` and `eval`. The recogniser is the tiny English model inside the wheel of
moonshine-voice 0.0.68, which needs no network.
"""

import argparse
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

import jiwer
import soundfile
import soxr
from moonshine_voice import ModelArch, Transcriber, get_model_path

from myxtts.data.demo import VOICES, DemoVoice, plan_jobs, speak_jobs
from myxtts.data.demo_sentences import held_out_sentences


def main() -> None:
    arguments = _parse()
    sentences = held_out_sentences("en", arguments.sentences, arguments.seed)
    transcriber = Transcriber(str(get_model_path("tiny-en")), ModelArch.TINY)
    print(f"{len(sentences)} sentences, moonshine tiny-en")
    print("| variant | rate | pitch | seconds a sentence | WER | CER |")
    print("|---|---|---|---|---|---|", flush=True)
    for voice in arguments.voices:
        print(_row(voice, sentences, transcriber), flush=True)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("voices", nargs="*", type=_voice, default=VOICES["en"])
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def _voice(text: str) -> DemoVoice:
    variant, rate, *pitch = text.split(":")
    return DemoVoice(variant, int(rate), *map(int, pitch))


def _row(voice: DemoVoice, sentences: Sequence[str], transcriber: Transcriber) -> str:
    with tempfile.TemporaryDirectory() as folder:
        speak_jobs(plan_jobs("en", [voice], sentences), Path(folder))
        paths = sorted(Path(folder).glob("*.wav"))
        heard = [normalise(transcribe(path, transcriber)) for path in paths]
        seconds = sum(soundfile.info(path).duration for path in paths) / len(paths)
    said = [normalise(sentence) for sentence in sentences]
    return (
        f"| {voice.variant} | {voice.rate} | {voice.pitch} | {seconds:.2f} "
        f"| {jiwer.wer(said, heard):.3f} | {jiwer.cer(said, heard):.3f} |"
    )


def transcribe(path: Path, transcriber: Transcriber) -> str:
    """Return what the recogniser hears in a recording."""
    samples, rate = soundfile.read(path, dtype="float32")
    samples = soxr.resample(samples, rate, 16000)
    transcript = transcriber.transcribe_without_streaming(samples.tolist(), 16000)
    return " ".join(line.text for line in transcript.lines)


def normalise(text: str) -> str:
    """Return the words alone: lower case, without punctuation."""
    return " ".join(re.sub(r"[^a-z ]", "", text.lower().replace("-", " ")).split())


if __name__ == "__main__":
    main()
