"""Long runs: what a process holds and writes stays bounded, however long it works."""

import shutil
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random

from benchmarks.drills.cases import ACCEPTED, UNBOUNDED, Case, Outcome, Size
from benchmarks.drills.growth import Counter, Limits, watch
from benchmarks.drills.inputs.voices import save_small_voice

TITLE = "long runs: memory, threads, descriptors and files stay bounded"
STEPS, SYNTHESES, NEURAL, EPOCHS, OPENINGS, VALIDATIONS = 20_000, 5_000, 1_000, 600, 200, 150

# What a run may write: a line of the history for each logged interval and each validation, about
# thirty scalars of TensorBoard for each, and a page that is as large after a year.
HISTORY_BYTES_PER_LINE = 1_500
BOARD_BYTES_PER_LINE = 6_000
PAGE_BYTES = 2_000_000
MOST_CHECKPOINTS = 5

LOG_INTERVAL = 20
_SMALL = {
    "use_gst": False,
    "text_encoder_dim": 8,
    "text_encoder_conv_layers": 0,
    "text_encoder_layers": 0,
    "text_encoder_heads": 1,
    "decoder_dim": 8,
    "decoder_layers": 1,
    "audio_encoder_dim": 8,
    "audio_encoder_layers": 1,
    "speaker_embedding_dim": 4,
    "batch_size": 2,
    "num_workers": 1,
    "val_fraction": 0.2,
    "warmup_steps": 4,
    "alignment_prior_steps": 10,
    "sample_interval": 0,
}
_WORDS = "amber bridge candle distant early forest garden hollow island jacket".split()


def set_up(folder: Path, seed: int, size: Size) -> None:
    """A corpus to train on, one of few clips for short epochs, a voice, and a vocoder."""
    from myxtts.checkpoints.vocoders import save_vocoder
    from myxtts.config.audio_spec import AudioSpec
    from tests.helpers.make_corpus import make_corpus
    from tests.helpers.tiny_vocoder import tiny_vocoder

    # An epoch costs as much as a dozen of these steps: the corpus for steps has longer ones.
    make_corpus(folder / "longer", 240, seed=seed, seconds=(0.3, 0.5))
    make_corpus(folder / "corpus", 8, seed=seed, seconds=(0.3, 0.5))
    save_small_voice(folder / "voice", seed)
    save_vocoder(folder / "istft", tiny_vocoder(AudioSpec()), AudioSpec())


def cases(folder: Path, seed: int, size: Size) -> Iterator[Case]:
    steps, syntheses = size.count(STEPS, 600), size.count(SYNTHESES, 300)
    validations, epochs = size.count(VALIDATIONS, 40), size.count(EPOCHS, 80)
    kinds: list[tuple[str, str, Callable[[Path], Outcome]]] = [
        ("steps", "training", partial(_train, folder, steps, max(LOG_INTERVAL, steps // 100))),
        ("validations", "training", partial(_train, folder, 2 * validations, 2)),
    ]
    for reader, settings in _READERS.items():
        run = partial(_read_epochs, folder, settings, epochs)
        kinds.append((f"epochs-{reader}", "epochs of data", run))
    openings = size.count(OPENINGS, 60)
    kinds.append(("openings", "openings of the cache", partial(_open, folder, openings)))
    for vocoder, count in (("griffin_lim", syntheses), ("istft", size.count(NEURAL, 150))):
        run = partial(_speak, folder, vocoder, count, seed)
        kinds.append((f"speech-{vocoder}", "syntheses in one process", run))
    for name, kind, run in kinds:
        yield Case(name, kind, run, seconds=4 * 3600.0, megabytes=8000.0)


_READERS = {
    "precompute": {"preprocessing_mode": "precompute"},
    "auto": {"preprocessing_mode": "auto"},
    "runtime": {"preprocessing_mode": "runtime"},
    "host": {"preprocessing_mode": "precompute", "use_tf_native_loading": False},
}


def _train(folder: Path, steps: int, validation_interval: int, work: Path) -> Outcome:
    run = work / "run"
    corpus = Path(shutil.copytree(folder / "longer", work / "corpus"))

    def train(counter: Counter) -> None:
        from myxtts.config.config import XTTSConfig
        from myxtts.training.loop import TrainingLoop
        from myxtts.training.trainer import XTTSTrainer

        config = XTTSConfig(
            **_SMALL,
            data_path=str(corpus),
            checkpoint_dir=str(run),
            # Features that are stored during the first epoch have another reader behind it.
            preprocessing_mode="precompute",
            epochs=steps,
            max_steps=steps,
            log_interval=LOG_INTERVAL,
            # Often enough that the first of each falls into the warm-up.
            save_interval=max(LOG_INTERVAL, steps // 20),
            validation_interval=validation_interval,
        )
        take_step = TrainingLoop._step

        def step(loop, *args):
            take_step(loop, *args)
            counter.set(loop.done)

        TrainingLoop._step = step
        XTTSTrainer(config).train()

    fault, told = watch(train, steps, work / "log", 3 * 3600.0, Limits())
    if fault:
        return fault
    lines = steps // LOG_INTERVAL + steps // validation_interval + 2
    return judge_files(run, lines, told)


def judge_files(run: Path, lines: int, told: str) -> Outcome:
    """Whether what a run has written is as little as stated."""
    figures = {
        "history.jsonl": (_bytes(run / "history.jsonl"), HISTORY_BYTES_PER_LINE * lines),
        "tensorboard": (_bytes(run / "tensorboard"), BOARD_BYTES_PER_LINE * lines),
        "pages": (max(map(_bytes, run.glob("*.html")), default=0), PAGE_BYTES),
        "checkpoints": (len(list((run / "checkpoints").glob("*"))), MOST_CHECKPOINTS),
    }
    words = ", ".join(f"{name} {found:,} of {most:,}" for name, (found, most) in figures.items())
    grown = [name for name, (found, most) in figures.items() if found > most]
    if grown:
        return Outcome(UNBOUNDED, f"{', '.join(grown)}: {words}; {told}")
    return Outcome(ACCEPTED, f"{told}; {words}")


def _bytes(path: Path) -> int:
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


def _read_epochs(folder: Path, settings: dict, epochs: int, work: Path) -> Outcome:
    """Epochs of batches; every third is left after its first batch."""
    corpus = Path(shutil.copytree(folder / "corpus", work / "corpus"))

    def read(counter: Counter) -> None:
        from myxtts.config.config import XTTSConfig
        from myxtts.data.batches.training_data import TrainingData

        data = TrainingData(XTTSConfig(**_SMALL, **settings, data_path=str(corpus)))
        for epoch in range(epochs):
            batches = data.train_batches(epoch)
            for _ in islice(batches, 1 if epoch % 3 == 2 else None):
                pass
            counter.set(epoch + 1)

    return _judged(*watch(read, epochs, work / "log", 3600.0, Limits(kilobytes_per_unit=20.0)))


def _open(folder: Path, count: int, work: Path) -> Outcome:
    """Open the data, read a batch, and let go of all of it."""
    corpus = Path(shutil.copytree(folder / "corpus", work / "corpus"))

    def open_often(counter: Counter) -> None:
        from myxtts.config.config import XTTSConfig
        from myxtts.data.batches.training_data import TrainingData

        for number in range(count):
            data = TrainingData(XTTSConfig(**_SMALL, data_path=str(corpus)))
            next(iter(data.train_batches(0)))
            next(data.stream())
            counter.set(number + 1)

    limits = Limits(kilobytes_per_unit=60.0)
    return _judged(*watch(open_often, count, work / "log", 3600.0, limits))


def _speak(folder: Path, vocoder: str, count: int, seed: int, work: Path) -> Outcome:
    """Texts of all lengths, one by one and some in batches."""

    def speak(counter: Counter) -> None:
        from myxtts.checkpoints import load_voice
        from myxtts.inference.synthesizer import Synthesizer

        random = Random(seed)
        name = vocoder if vocoder == "griffin_lim" else str(folder / vocoder)
        synthesizer = Synthesizer(load_voice(folder / "voice"), name)
        for number in range(count):
            words = random.choices(_WORDS, k=random.randint(1, 6))
            text = " ".join(words).capitalize() + "."
            if number % 25 == 24:
                synthesizer.speak_many([text] * 3)
            else:
                synthesizer.speak(text, speaker=random.choice(("anna", "ben")), seed=number)
            counter.set(number + 1)

    return _judged(*watch(speak, count, work / "log", 3600.0, Limits(kilobytes_per_unit=10.0)))


def _judged(fault: Outcome | None, told: str) -> Outcome:
    return fault or Outcome(ACCEPTED, told)
