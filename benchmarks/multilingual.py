"""One model of several corpora and languages: what it keeps of the first, and who speaks what.

    python benchmarks/multilingual.py RUN CORPUS [CORPUS ...] [--steps 6000]
        [--across SPEAKER:LANGUAGE ...] [-- further flags of `myxtts finetune`]

Trains RUN from the voice in the package on the corpora and on twelve voices of espeak-ng that each
speak English and Persian, unless it is trained already. Then it says the sentences that the first
corpus holds out, in their own voice by the run and by the voice in the package, and in the voices
of --across. All speak through Griffin-Lim. A voice is compared with recordings of its speaker.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from opening import parse_with_flags

from myxtts.bench import timing
from myxtts.cli.terminal import import_tensorflow
from myxtts.resources import default_voice

if TYPE_CHECKING:
    from myxtts.data.corpus.utterance import Utterance
    from myxtts.evaluation.evaluator import Evaluation

LANGUAGES, SPEAKERS, CLAUSES = ("en", "fa"), 12, 16
VOCODER = "griffin_lim"
REFERENCES = 12  # recordings that a voice is compared with
# What a run of this length takes besides what has a flag.
SETTINGS = """training:
  voice_similarity_loss_weight: 0.0
  ema_decay: 0.998
  warmup_steps: 200
  save_interval: 500
  validation_interval: 1000
"""


def main() -> None:
    asked = _parse()
    import_tensorflow()
    from myxtts import evaluate

    print("command:", " ".join(["python", *sys.argv]))
    print("machine:", timing.describe_machine())
    if not (asked.run / "voice").is_dir():
        train(asked)
    judged = {"sentences": asked.sentences, "vocoder": VOCODER}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for voice in (asked.run, default_voice()):
            found = evaluate(voice, str(asked.corpora[0]), **judged)
            _print(f"{voice.name} on {asked.corpora[0].name}", found)
        for one in asked.across:
            speaker, _, language = one.rpartition(":")
            _print(f"{speaker} in {language}", speak_across(asked, folder, speaker, language))


def train(asked: argparse.Namespace) -> None:
    """Make the corpus of voices that speak both languages, and train on it and the others."""
    asked.run.mkdir(parents=True, exist_ok=True)
    settings = asked.run / "multilingual.yaml"
    settings.write_text(SETTINGS, encoding="utf-8")
    corpora = [*asked.corpora, bilingual_corpus(asked.run / "bilingual")]
    data = [word for corpus in corpora for word in ("--data", str(corpus))]
    own = "--val-fraction 0.044 --lr 1e-3 --use-pretrained-speaker-encoder "
    own += "--speaker-encoder-type resemblyzer"
    flags = [*own.split(), "--text-voice", asked.text_voice, "--seed", str(asked.seed)]
    flags += ["--config", str(settings), "--max-steps", str(asked.steps), *asked.finetune]
    command = [sys.executable, "-m", "myxtts.cli.main", "finetune", *data, *flags]
    subprocess.run([*command, "--checkpoint-dir", str(asked.run)], check=True)


def bilingual_corpus(folder: Path) -> Path:
    """Clauses of the built-in corpora of both languages, in which a speaker has one name."""
    from myxtts.demo_corpus.corpus import make_demo

    (folder / "wavs").mkdir(parents=True, exist_ok=True)
    texts, speakers = [], []
    for language in LANGUAGES:
        made = make_demo(folder / language, language, speakers=SPEAKERS, clauses=CLAUSES)
        lines = (made / "metadata.csv").read_text(encoding="utf-8").splitlines()
        texts += [f"{language}_{line}\n" for line in lines]
        for line in lines:
            own = line.partition("|")[0]
            speakers.append(f"{language}_{own}|{own.rpartition('-')[0]}|{language}\n")
            target = folder / "wavs" / f"{language}_{own}.wav"
            shutil.copy(made / "wavs" / f"{own}.wav", target)
    (folder / "metadata.csv").write_text("".join(texts), encoding="utf-8")
    (folder / "speakers.csv").write_text("".join(speakers), encoding="utf-8")
    return folder


def speak_across(
    asked: argparse.Namespace, folder: Path, speaker: str, language: str
) -> "Evaluation":
    """Say the first corpus's held-out sentences as a speaker of another one, and judge that."""
    from myxtts.audio.io import write_wav
    from myxtts.workflows.evaluate_recordings import evaluate_recordings
    from myxtts.workflows.evaluate_voice import choose_held_out, load_synthesizer

    synthesizer = load_synthesizer(asked.run, VOCODER)
    data = replace(synthesizer.voice.config.data, dataset_path=str(asked.corpora[0]))
    chosen, _ = choose_held_out(data, synthesizer, language, asked.sentences)
    texts = [one.text for one in chosen]
    spoken = synthesizer.speak_many(texts, language=language, speaker=speaker)
    wavs, references = folder / f"{speaker}-{language}", folder / f"{speaker}-references"
    for made in (wavs, references):
        made.mkdir()
    for one, said in zip(chosen, spoken, strict=True):
        write_wav(wavs / f"{one.audio.stem}.wav", said.samples, said.sample_rate)
    lines = [f"{one.audio.stem}|{text}\n" for one, text in zip(chosen, texts, strict=True)]
    (folder / "texts.csv").write_text("".join(lines), encoding="utf-8")
    for one in recordings_of(speaker, asked.corpora):
        shutil.copy(one.audio, references / f"reference-{one.audio.name}")
    return evaluate_recordings(
        wavs, folder / "texts.csv", references, language=language, vocoder=VOCODER
    )


def recordings_of(speaker: str, corpora: Sequence[Path]) -> "list[Utterance]":
    """The longest recordings of a speaker."""
    from myxtts.config.config import DataConfig
    from myxtts.data.features.corpora import read_corpora

    found = [
        one
        for corpus in corpora
        for one in read_corpora(DataConfig(dataset_path=str(corpus)))[0].utterances
        if one.speaker == speaker
    ]
    return sorted(found, key=lambda one: one.audio.stat().st_size)[-REFERENCES:]


def _print(what: str, found: "Evaluation") -> None:
    """Print the figures of speech beside those of recordings."""
    from myxtts.evaluation.report.rows import measure_rows
    from myxtts.evaluation.report.tables import aligned

    print(f"\n{what}\n{aligned(measure_rows(found))}", flush=True)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=Path, help="where the run is, or is to be")
    parser.add_argument("corpora", type=Path, nargs="+", help="what to train on besides espeak-ng")
    parser.add_argument("--across", nargs="*", default=[], metavar="SPEAKER:LANGUAGE")
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--sentences", type=int, default=40)
    parser.add_argument("--text-voice", choices=("own", "shared"), default="shared")
    parser.add_argument("--seed", type=int, default=5)
    asked, asked.finetune = parse_with_flags(parser)
    return asked


if __name__ == "__main__":
    main()
