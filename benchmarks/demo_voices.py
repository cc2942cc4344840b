"""How high the voices of the built-in corpus are, and how well a recogniser understands them.

    python benchmarks/demo_voices.py                       # the first eight
    python benchmarks/demo_voices.py --speakers 48 --unseen --sentences 5
    python benchmarks/demo_voices.py zac-p30 f2:140 steph:150:60   # names, variant:rate[:pitch] ...

Needs the extras `phonemes` and `eval`. The recogniser is the tiny English model inside the wheel of
moonshine-voice 0.0.68, which needs no network; there is none for Persian.
"""

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import soundfile

from myxtts.audio.pitch import pitch
from myxtts.config.audio_spec import AudioSpec
from myxtts.demo_corpus.corpus import choose_voices, plan_jobs, speak_jobs, unseen_voices
from myxtts.demo_corpus.sentences import held_out_sentences
from myxtts.demo_corpus.voices import UNSEEN, VOICES, DemoVoice
from myxtts.evaluation.asr import Moonshine, Recording, asr_for
from myxtts.evaluation.metrics.intelligibility import error_rates

SPEC = AudioSpec()


def main() -> None:
    arguments = _parse()
    language = arguments.language
    sentences = held_out_sentences(language, arguments.sentences, arguments.seed)
    recogniser = asr_for(language)
    print(f"{len(sentences)} sentences, {recogniser.name if recogniser else 'no recogniser'}")
    print("| voice | rate | pitch | median F0 | seconds a sentence | WER | CER |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for voice in _voices(arguments):
        print(_row(voice, language, sentences, recogniser), flush=True)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("voices", nargs="*", help="names, or variant:rate[:pitch]")
    parser.add_argument("--speakers", type=int, default=8, help="how many, where none is named")
    parser.add_argument("--unseen", action="store_true", help="and those that no corpus has")
    parser.add_argument("--language", choices=VOICES, default="en")
    parser.add_argument("--sentences", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def _voices(arguments: argparse.Namespace) -> tuple[DemoVoice, ...]:
    language = arguments.language
    named = tuple(_voice(text, language) for text in arguments.voices)
    unseen = unseen_voices(language) if arguments.unseen else ()
    return (named or choose_voices(language, arguments.speakers)) + unseen


def _voice(text: str, language: str) -> DemoVoice:
    known = {voice.name: voice for voice in VOICES[language] + UNSEEN[language]}
    if ":" not in text:
        if text not in known:
            raise SystemExit(f"no voice is named {text!r}; there are {', '.join(known)}")
        return known[text]
    variant, rate, *pitch = text.split(":")
    return DemoVoice(variant, int(rate), *map(int, pitch))


def _row(
    voice: DemoVoice, language: str, sentences: Sequence[str], recogniser: Moonshine | None
) -> str:
    with tempfile.TemporaryDirectory() as folder:
        speak_jobs(plan_jobs(language, [voice], sentences), Path(folder))
        paths = sorted(Path(folder).glob("*.wav"))
        recordings = [soundfile.read(path, dtype="float32") for path in paths]
    seconds = sum(len(samples) / rate for samples, rate in recordings) / len(recordings)
    errors = "– | –"
    if recogniser:
        rates = error_rates(sentences, recogniser.transcribe_many(recordings))
        errors = f"{rates.wer:.3f} | {rates.cer:.3f}"
    return (
        f"| {voice.name} | {voice.rate} | {voice.pitch} | {_median_f0(recordings):.0f} "
        f"| {seconds:.2f} | {errors} |"
    )


def _median_f0(recordings: Sequence[Recording]) -> float:
    """Return the median in Hz over the voiced frames."""
    f0 = np.concatenate([pitch(samples, SPEC) for samples, _ in recordings])
    return float(np.median(f0[f0 > 0]))


if __name__ == "__main__":
    main()
