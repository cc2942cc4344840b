"""An exported voice against the trained one over many texts: durations, samples and mels.

python benchmarks/parity.py RUN [--vocoder NAME ...] [--texts 100] [--rates .5 1 2] [--export DIR]
    [--litert xnnpack|plain]

Prints a row for each vocoder, language and rate. Samples are within -1 .. 1, at -23 LUFS. With
--litert, DIR is one of `--to litert`: its model is run with or without XNNPACK, and texts are those
that a synthesizer does not cut.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import numpy as np

from myxtts.demo_corpus.sentences import GRAMMARS, held_out_sentences
from myxtts.inference.synthesizer import Synthesizer
from myxtts.text.languages import LANGUAGES
from myxtts.workflows.exports.common import as_line, is_line, speaker
from myxtts.workflows.exports.litert import MODEL, lite_speaker
from myxtts.workflows.parity import Case, Speak

MOST_SAMPLES = 1e-3
COLUMNS = ("texts", "speech", "durations", "within", "max", "p99", "median RMS", "largest mel")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", help="a run with a voice, or the voice")
    parser.add_argument("--vocoder", nargs="+", default=["auto"])
    parser.add_argument("--texts", type=int, default=100, help="of each language")
    parser.add_argument("--rates", type=float, nargs="+", default=[0.5, 1.0, 2.0])
    parser.add_argument("--export", help="an export of RUN that is there already")
    parser.add_argument("--litert", choices=("xnnpack", "plain"), help="how to run voice.tflite")
    args = parser.parse_args()
    if args.litert and not args.export:
        parser.error("--litert takes --export")
    print("| vocoder | language | rate | " + " | ".join(COLUMNS) + " |")
    print("|---" * (3 + len(COLUMNS)) + "|", flush=True)
    for vocoder in args.vocoder:
        with tempfile.TemporaryDirectory() as folder:
            exported = args.export or make_export(args.run, vocoder, Path(folder) / "exported")
            trained = Synthesizer.load(args.run, vocoder)
            if args.litert:
                from myxtts.export.litert import LiteSpeaker

                content = Path(exported, MODEL).read_bytes()
                spoken = LiteSpeaker(content, delegates=args.litert == "xnnpack")
                says = as_line(trained), lite_speaker(trained, spoken)
            else:
                says = speaker(trained), speaker(Synthesizer.load(exported))
            compare(trained, says, args)


def make_export(run: str, vocoder: str, target: Path) -> Path:
    command = [sys.executable, "-m", "myxtts.cli.main", "export", "--to", "onnx", "--voice", run]
    command += ["--vocoder", vocoder, "-o", str(target)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return target


def compare(trained: Synthesizer, says: tuple[Speak, Speak], args: argparse.Namespace) -> None:
    voice = trained.voice
    for language in voice.languages:
        rows = []
        texts = sentences(language, args.texts)
        if args.litert:
            texts = [text for text in texts if is_line(Case(text, language, "", 1.0))]
        for rate_number, rate in enumerate(args.rates):
            chosen = texts[rate_number :: len(args.rates)]
            mine = list(differences(voice.speakers, says, chosen, language, rate))
            rows += mine
            show(trained.vocoder.name, language, f"{rate:g}", mine)
        show(trained.vocoder.name, language, "all", rows)


def sentences(language: str, count: int) -> list[str]:
    """Hard sentences first, then made ones."""
    row = LANGUAGES.get(language)
    hard = [text for texts in row.hard_sentences.values() for text in texts] if row else []
    made = held_out_sentences(language, count) if language in GRAMMARS else []
    return (hard[: count // 3] + made)[:count]


def differences(
    speakers: Sequence[str],
    says: tuple[Speak, Speak],
    texts: list[str],
    language: str,
    rate: float,
) -> Iterator[tuple[float, bool, np.ndarray | None, float]]:
    """Of each text: seconds, whether durations are equal, differences of samples, and of mels."""
    for number, text in enumerate(texts):
        case = Case(text, language, speakers[number % len(speakers)], rate)
        first, second = (say(case) for say in says)
        if first.mel.shape != second.mel.shape or (first.durations != second.durations).any():
            yield first.seconds, False, None, 0.0
            continue
        mel = float(np.abs(first.mel - second.mel).max())
        yield first.seconds, True, np.abs(first.samples - second.samples), mel


def show(vocoder: str, language: str, rate: str, rows: list) -> None:
    same = [(samples, mel) for _, is_same, samples, mel in rows if is_same]
    if not same:
        print(f"| {vocoder} | {language} | {rate} | {len(rows)} | no text has equal durations |")
        return
    sizes = [samples.max() for samples, _ in same]
    rms = [np.sqrt(np.square(samples).mean()) for samples, _ in same]
    cells = (
        *(vocoder, language, rate, len(rows), f"{sum(row[0] for row in rows):.0f} s"),
        f"{len(same)} equal",
        f"{sum(size <= MOST_SAMPLES for size in sizes)} texts",
        f"{max(sizes):.1e}",
        f"{np.quantile(np.concatenate([samples for samples, _ in same]), 0.99):.1e}",
        f"{np.median(rms):.1e}",
        f"{max(mel for _, mel in same):.1e}",
    )
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


if __name__ == "__main__":
    main()
