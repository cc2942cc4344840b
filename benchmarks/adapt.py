"""Clones of unseen speakers by a short fine-tuning on their reference, next to the embedding alone.

    python benchmarks/adapt.py RUN CORPUS [--seconds 8] [--steps 300] [--sentences 18]
        [-- further flags of `myxtts finetune`]

Each speaker of the corpus that the voice does not know is cloned from so many seconds of its
recordings, twice: by `synthesize --reference`, and by `myxtts finetune` on the same recordings and
their texts. Both say what the speaker has said in others, and are judged as `myxtts evaluate
--clone-seconds` judges: the speakers that the voice knows are there to be confused with.
"""

import argparse
import csv
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from opening import parse_with_flags

from myxtts.bench import timing
from myxtts.cli.terminal import import_tensorflow

if TYPE_CHECKING:
    from myxtts.data.corpus.utterance import Utterance
    from myxtts.inference.speech import Speech
    from myxtts.workflows.clones import Strangers

MOST_FRAMES = 3000  # a reference of one long recording is used as it is


def main() -> None:
    asked = _parse()
    import_tensorflow()
    from myxtts.config.config import DataConfig
    from myxtts.data.features.corpora import read_corpora
    from myxtts.evaluation.evaluator import choose_utterances
    from myxtts.workflows.clones import find_strangers, write_references
    from myxtts.workflows.evaluate_voice import load_synthesizer
    from myxtts.workflows.speaking import speak_sentences

    print("command:", " ".join(["python", *sys.argv]))
    print("machine:", timing.describe_machine())
    synthesizer = load_synthesizer(asked.run)
    corpus, _ = read_corpora(DataConfig(dataset_path=str(asked.corpus)))
    able = [one for one in corpus.utterances if one.language == asked.language]
    strangers = find_strangers(able, synthesizer.voice.speakers, asked.seconds, None)
    chosen = choose_utterances(strangers.sentences, asked.sentences)
    rate = synthesizer.spec.sample_rate
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        references = write_references(folder, strangers.references, asked.seconds, rate)

        def who(speaker: str) -> dict[str, list[str]]:
            return {"reference": [references[speaker]]}

        cloned = speak_sentences(synthesizer, chosen, asked.language, who)
        _judge("by the embedding", chosen, strangers, cloned, asked.run)
        adapted = dict(_adapted(asked, folder, strangers, chosen))
    speech = [adapted[one.id] for one in chosen]
    _judge(f"by {asked.steps} steps of fine-tuning", chosen, strangers, speech, asked.run)


def _adapted(
    asked: argparse.Namespace,
    folder: Path,
    strangers: "Strangers",
    chosen: "Sequence[Utterance]",
) -> "Iterator[tuple[str, Speech]]":
    """Fine-tune on the references of one speaker after the other, and speak its sentences."""
    from myxtts.workflows.evaluate_voice import load_synthesizer
    from myxtts.workflows.speaking import speak_sentences

    for speaker, some in strangers.references.items():
        own = [one for one in chosen if one.speaker == speaker]
        if not own:
            continue
        corpus, run = folder / "corpus", folder / "run"
        _write_corpus(corpus, some)
        began = time.perf_counter()
        subprocess.run(_command(asked, corpus, run), check=True, stdout=subprocess.DEVNULL)
        took = time.perf_counter() - began
        print(f"{speaker}: {len(some)} recordings, fine-tuned in {took:.0f} s", flush=True)
        synthesizer = load_synthesizer(run)
        yield from zip(
            (one.id for one in own),
            speak_sentences(synthesizer, own, asked.language),
            strict=True,
        )
        shutil.rmtree(corpus)
        shutil.rmtree(run)


def _command(asked: argparse.Namespace, corpus: Path, run: Path) -> list[str]:
    given = {
        "--voice": asked.run,
        "--data": corpus,
        "--val-data": corpus,  # too little to hold anything out: its loss says nothing
        "--language": asked.language,
        "--checkpoint-dir": run,
        "--max-steps": asked.steps,
        "--max-mel-frames": MOST_FRAMES,
        "--batch-size": asked.batch_size,
    }
    if asked.lr:
        given["--lr"] = asked.lr
    pairs = [str(part) for pair in given.items() for part in pair]
    return [sys.executable, "-m", "myxtts.cli.main", "finetune", *pairs, *asked.finetune]


def _write_corpus(folder: Path, some: "Sequence[Utterance]") -> None:
    """Write recordings in LJSpeech's layout."""
    (folder / "wavs").mkdir(parents=True)
    with open(folder / "metadata.csv", "w", newline="", encoding="utf-8") as table:
        rows = csv.writer(table, delimiter="|", quoting=csv.QUOTE_NONE, quotechar=None)
        for one in some:
            rows.writerow([one.audio.stem, one.text, one.text])
            shutil.copy(one.audio, folder / "wavs" / one.audio.name)
    lines = [f"{one.audio.stem}|{one.speaker}|{one.language}\n" for one in some]
    (folder / "speakers.csv").write_text("".join(lines), encoding="utf-8")


def _judge(
    what: str,
    chosen: "Sequence[Utterance]",
    strangers: "Strangers",
    speech: "Sequence[Speech]",
    run: Path,
) -> None:
    """Print what the judges say of speech."""
    from myxtts.checkpoints import load_voice
    from myxtts.evaluation.metrics.session import Subject
    from myxtts.evaluation.metrics.table import HARD_TEXTS
    from myxtts.evaluation.report.rows import measure_rows
    from myxtts.evaluation.report.tables import aligned
    from myxtts.inference.vocoders import AUTO
    from myxtts.workflows.evaluate_voice import judge
    from myxtts.workflows.speaking import known_recordings, make_sentence, read_all
    from myxtts.workflows.stages import Stages

    config = load_voice(run).config
    spec = config.data.audio_spec
    recorded = read_all([one.audio for one in chosen], spec.sample_rate)
    sentences = [
        make_sentence(one.id, one.text, one.speaker, said, heard)
        for one, said, heard in zip(chosen, speech, recorded, strict=True)
    ]
    needed = list({one.speaker for one in chosen})
    known: Mapping = known_recordings(strangers.others, needed, spec.sample_rate)
    absent = {HARD_TEXTS: "of many voices"}
    subject = Subject(what, chosen[0].language, spec, sentences, AUTO, known, None, absent)
    evaluation = judge(subject, config.model.speaker_encoder, Stages())
    print(f"\n{what}\n{aligned(measure_rows(evaluation))}", flush=True)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=Path, help="a run with checkpoints, or its voice")
    parser.add_argument("corpus", type=Path, help="unseen speakers, and some that the voice knows")
    parser.add_argument("--language", default="en")
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--lr", type=float, help="highest learning rate (default: finetune's own)")
    parser.add_argument("--sentences", type=int, default=18)
    parser.epilog = "Further flags of `myxtts finetune` come after --."
    asked, asked.finetune = parse_with_flags(parser)
    return asked


if __name__ == "__main__":
    main()
