"""How well a voice is understood after little training, beside Matcha-TTS at equal CPU time.

    python benchmarks/matcha.py --matcha-python PYTHON [--work FOLDER] [--rates 1e-4 4e-4]
        [--budgets 300 600 1000] [--steps 2600 5300 9000]

PYTHON is an interpreter that has torch and Matcha-TTS (the package `matcha`). Both train on one
synthetic voice of 800 clauses, on one core and one thread: the same phonemes and log-mels, which
are computed before. CPU time counts from the start of a process, with imports and saving. Matcha's
rate is constant, so one run shows all budgets. Each run of ours is planned for its own budget, by a
number of --steps that fits it on the machine at hand. Both say 100 unseen sentences through
Griffin-Lim at one loudness, and one ASR judges them. `mean` is what Matcha's encoder predicts along
its own durations, without the flow. What --work holds is not made again. Needs the extras
`phonemes` and `eval`.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import soundfile
from opening import run_in_work

from myxtts.audio.io import read_audio
from myxtts.audio.mel import log_mel
from myxtts.audio.threads import single_threaded_blas
from myxtts.bench import timing
from myxtts.bench.timing import Target
from myxtts.config.audio_spec import AudioSpec
from myxtts.demo_corpus.corpus import choose_voices, make_demo, record_sentences
from myxtts.demo_corpus.sentences import held_out_sentences

LANGUAGE, CLAUSES, SENTENCES = "en", 800, 100
FOREVER = 1_000_000
SPEC = AudioSpec()
OURS, FLOW, MEAN = "ours", "flow", "mean"
ONE_THREAD = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")


def main() -> None:
    run_in_work(run, _parse())


def run(work: Path, asked: argparse.Namespace) -> list[Target]:
    """Train both, let them speak, print their error rates, and return the bars."""
    corpus = make_demo(work / "corpus", LANGUAGE, speakers=1, clauses=CLAUSES)
    texts = held_out_sentences(LANGUAGE, SENTENCES)
    recorded = record_sentences(work, LANGUAGE, choose_voices(LANGUAGE, 1)[0], texts)
    listed = "".join(f"{one.stem}|{text}\n" for one, text in zip(recorded, texts, strict=True))
    (work / "unseen.csv").write_text(listed, encoding="utf-8")
    write_data(work / "data.npz", corpus, texts)
    prepare(corpus)
    for rate in asked.rates:
        train_matcha(work, rate, asked)
    spent = {
        budget: train_ours(work, corpus, budget, steps, asked.core)
        for budget, steps in zip(asked.budgets, asked.steps, strict=True)
    }
    names = [one.stem for one in recorded]
    rows, found = [("", "CPU-s", "WER", "CER")], {}
    for who, budget, wavs in speak(work, texts, names, asked):
        judged, ceilings = judge(work, wavs, recorded[0].parent)
        found[who, budget] = judged["wer"].value
        rows.append((who, str(budget), *map(_shown, judged.values())))
    rows += [(name, "", *map(_shown, both.values())) for name, both in ceilings.items()]
    print(timing.table(rows[0], rows[1:]))
    return _print_all(bars(found, spent, asked))


def write_data(path: Path, corpus: Path, texts: list[str]) -> None:
    """Write what Matcha trains on and is to say: phonemes, numbered from 1, and log-mels.

    A file that exists is kept: what was trained on it has its numbers.
    """
    from myxtts.text.tokenizer import Tokenizer

    if path.exists():
        return
    lines = (corpus / "metadata.csv").read_text(encoding="utf-8").splitlines()
    names, said = zip(*(line.split("|")[:2] for line in lines), strict=True)
    tokens = Tokenizer.build([LANGUAGE], "phonemes").encode_batch([*said, *texts], LANGUAGE)
    tokens = [ids[1:-1] for ids in tokens]  # Matcha's texts have no begin and no end
    used = np.unique(np.concatenate(tokens))
    tokens = [1 + np.searchsorted(used, ids) for ids in tokens]
    audio = [read_audio(corpus / "wavs" / f"{name}.wav", SPEC.sample_rate) for name in names]
    with single_threaded_blas():
        mels = [log_mel(samples, SPEC) for samples in audio]
    parts = {"tokens": tokens[: len(said)], "unseen": tokens[len(said) :], "mels": mels}
    flat = {name: np.concatenate(rows) for name, rows in parts.items()}
    lengths = {f"{name}_lengths": [len(row) for row in rows] for name, rows in parts.items()}
    np.savez(path, **flat, **lengths)


def prepare(corpus: Path) -> None:
    """Compute our features before the clock runs, as those of Matcha are."""
    _myxtts("prepare", str(corpus), "--text-units", "phonemes")


def train_matcha(work: Path, rate: str, asked: argparse.Namespace) -> None:
    """Train Matcha-TTS once, for the largest budget, unless its mels exist."""
    folder = work / f"matcha-{rate}"
    if all((folder / f"{budget}.npz").exists() for budget in asked.budgets):
        return
    program = Path(__file__).with_name("matcha_in_torch.py")
    words = [asked.matcha_python, program, work / "data.npz", folder, "--rate", rate]
    words += ["--budgets", *asked.budgets, "--batch", asked.batch, "--core", asked.core]
    subprocess.run(list(map(str, words)), check=True, env=_environment())


def train_ours(work: Path, corpus: Path, budget: int, steps: int, core: int) -> float:
    """Train the recipe of the demo for so many steps, unless that is done; return CPU-seconds."""
    folder = work / f"ours-{budget}"
    note = folder / "cpu_seconds.txt"
    if not note.exists():
        before = timing.cpu_seconds()
        words = ["train", "--data", corpus, "--checkpoint-dir", folder, "--max-steps", steps]
        words += ["--model-size", "tiny", "--text-units", "phonemes", "--reset-training"]
        words += ["--save-interval", FOREVER, "--validation-interval", FOREVER]
        _myxtts(*map(str, words), core=core)
        note.write_text(f"{timing.cpu_seconds() - before:.1f}\n")
    spent = float(note.read_text())
    print(f"ours, planned for {budget}: {steps:,} steps in {spent:.1f} CPU-seconds", flush=True)
    return spent


def _myxtts(*words: str, core: int | None = None) -> None:
    pinned = None if core is None else (lambda: os.sched_setaffinity(0, {core}))
    command = [sys.executable, "-m", "myxtts.cli.main", *words]
    subprocess.run(command, check=True, env=_environment(), preexec_fn=pinned)


def _environment() -> dict[str, str]:
    return os.environ | dict.fromkeys(ONE_THREAD, "1")


def speak(
    work: Path, texts: list[str], names: list[str], asked: argparse.Namespace
) -> Iterator[tuple[str, int, Path]]:
    """Say the texts; yield who spoke after how many CPU-seconds, and the folder of wavs."""
    from myxtts.audio.griffin_lim import griffin_lim
    from myxtts.inference.speech import set_level
    from myxtts.inference.synthesizer import Synthesizer

    for budget in asked.budgets:
        voice = Synthesizer.load(work / f"ours-{budget}", "griffin_lim", may_be_endless=True)
        own = voice.speak_many(texts, language=LANGUAGE)
        said = {OURS: [one.samples for one in own]}
        for rate in asked.rates:
            with np.load(work / f"matcha-{rate}" / f"{budget}.npz") as mels:
                for part in (FLOW, MEAN):
                    each = np.split(mels[part], np.cumsum(mels["lengths"])[:-1])
                    heard = [set_level(griffin_lim(mel, SPEC), SPEC.sample_rate) for mel in each]
                    said[f"Matcha-TTS, {part}, rate {rate}"] = heard
        for number, (who, all_samples) in enumerate(said.items()):
            wavs = work / "said" / f"{budget}-{number}"
            wavs.mkdir(parents=True, exist_ok=True)
            for name, samples in zip(names, all_samples, strict=True):
                soundfile.write(wavs / f"{name}.wav", samples, SPEC.sample_rate)
            yield who, budget, wavs


def judge(work: Path, wavs: Path, recorded: Path) -> tuple[dict, dict]:
    """WER and CER of speech with intervals, and of the recordings and their resynthesis."""
    from myxtts.evaluation.ceilings import CeilingCache
    from myxtts.evaluation.evaluator import evaluate
    from myxtts.evaluation.metrics.table import RECORDED, RESYNTHESIS, SPEECH
    from myxtts.weights import default_folder
    from myxtts.workflows.evaluate_recordings import read_subject
    from myxtts.workflows.judges import find_judges

    subject = read_subject(wavs, work / "unseen.csv", recorded, LANGUAGE, "griffin_lim")
    judges = find_judges(LANGUAGE, None, default_folder())
    measures = evaluate(subject, judges, cache=CeilingCache(), metrics=("wer", "cer")).measures
    speech, natural, resynthesis = (
        {name: one.intervals[source] for name, one in measures.items()}
        for source in (SPEECH, RECORDED, RESYNTHESIS)
    )
    return speech, {"recordings": natural, "their resynthesis": resynthesis}


def _shown(found) -> str:
    return f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]"


def bars(found: dict, spent: dict[int, float], asked: argparse.Namespace) -> Iterator[Target]:
    """Half the WER of the better of Matcha's rates at each budget, and at the last its mean's."""

    def best(part: str, budget: int) -> float:
        return min(found[f"Matcha-TTS, {part}, rate {rate}", budget] for rate in asked.rates)

    for budget in asked.budgets:
        own = found[OURS, budget]
        yield Target(f"CPU of our training for {budget} s", spent[budget], budget, unit="s")
        yield Target(f"our WER after {budget} CPU-s", own, best(FLOW, budget) / 2, unit="")
    what = f"our WER after {budget} CPU-s beside that of Matcha's mean"
    yield Target(what, own, best(MEAN, budget), unit="")


def _print_all(found: Iterator[Target]) -> list[Target]:
    targets = list(found)
    print("", *targets, sep="\n")
    return targets


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--matcha-python", required=True, help="a Python that has Matcha-TTS")
    parser.add_argument("--work", type=Path, help="keep all that is made here")
    parser.add_argument("--budgets", type=int, nargs="+", default=[300, 600, 1000])
    parser.add_argument("--steps", type=int, nargs="+", default=[2600, 5300, 9000], help="of ours")
    parser.add_argument("--rates", nargs="+", default=["1e-4", "4e-4"], help="of Matcha")
    parser.add_argument("--batch", type=int, default=8, help="of Matcha")
    parser.add_argument("--core", type=int, default=0, help="the core that both train on")
    return parser.parse_args()


if __name__ == "__main__":
    main()
