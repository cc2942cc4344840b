"""`LJSpeechDataset`: a corpus, its cache and its batches behind one object."""

from pathlib import Path
from typing import TYPE_CHECKING

from myxtts.config.config import DataConfig, XTTSConfig
from myxtts.data.batches.modes import ModeOpener
from myxtts.data.batches.profiler import usable_profiler
from myxtts.data.batches.split import split_dataset
from myxtts.data.batches.training_data import batch_options
from myxtts.data.corpus.utterance import Utterance
from myxtts.data.features.corpora import build_tokenizer, read_corpora
from myxtts.data.features.location import locate_cache
from myxtts.data.features.prepare import PrepareReport, prepare
from myxtts.data.features.repair import RepairReport, fix_cache, verify_cache
from myxtts.data.features.status import take_inventory
from myxtts.errors import UserError
from myxtts.monitoring.progress import Progress

if TYPE_CHECKING:
    import tensorflow as tf

SUBSETS = ("all", "train", "val")


class LJSpeechDataset:
    """One corpus in any layout that is understood; `subset` is "all", "train" or "val"."""

    def __init__(
        self,
        data_path: str | Path,
        config: DataConfig | XTTSConfig | None = None,
        subset: str = "all",
        progress: Progress | None = None,
    ):
        if subset not in SUBSETS:
            raise UserError(f"subset must be one of {', '.join(SUBSETS)}, not {subset!r}")
        self.config = _own_config(config or XTTSConfig())
        self.config.data.dataset_path = str(data_path)
        self.profiler = usable_profiler(self.config.data.profiler)
        self.progress = progress
        training, held_out = read_corpora(self.config.data)
        self.corpora = [training, held_out] if held_out else [training]
        # With a corpus for validation, the subset "val" is all of that one.
        self.corpus = held_out if held_out and subset == "val" else training
        self.subset = subset
        self.tokenizer = build_tokenizer(self.corpora, self.config.data)
        self.location = locate_cache(self.corpus.root, self.config.data, self.tokenizer).pull()

    @property
    def utterances(self) -> tuple[Utterance, ...]:
        if self.corpus is self.corpora[-1] and len(self.corpora) > 1:
            return self.corpus.utterances
        subsets = {"all": self.corpus.utterances, "train": self.corpus.train}
        return subsets.get(self.subset, self.corpus.val)

    def __len__(self) -> int:
        return len(self.utterances)

    def precompute_mels(
        self, num_workers: int | None = None, overwrite: bool = False
    ) -> PrepareReport:
        """Fill the cache with mels, energies and pitches; the report names what failed."""
        return self._prepare(num_workers, overwrite, tokens=False)

    def precompute_tokens(
        self, num_workers: int | None = None, overwrite: bool = False
    ) -> PrepareReport:
        """Fill the cache with tokens."""
        return self._prepare(num_workers, overwrite, features=False)

    def create_tf_dataset(
        self,
        batch_size: int | None = None,
        use_cache_files: bool = True,
        num_parallel_calls: int | None = None,
        shuffle: bool = True,
        epoch: int = 0,
    ) -> "tf.data.Dataset":
        """One epoch as a tf.data.Dataset of dicts, padded, exactly `batch_size` utterances each.

        Without `use_cache_files` features are computed from the recordings and nothing is written.
        """
        config = _own_config(self.config)
        config.data.batch_size = batch_size or config.data.batch_size
        if not use_cache_files:
            config.data.preprocessing_mode = "runtime"
        opener = ModeOpener(config, self.tokenizer, self.corpora, self.progress, self.profiler)
        split = opener.open(self.utterances, self.corpus.root, self.subset)
        plan = split.plan(batch_options(config), epoch, shuffle)
        return split_dataset(split, plan, config.data, num_parallel_calls)

    def verify_and_fix_cache(self, fix: bool = True) -> RepairReport:
        """Find all that is damaged or missing; with `fix`, make just that again."""
        if fix:
            workers = self.config.data.num_workers
            return fix_cache(self.location, self.utterances, workers, self.progress)
        return RepairReport(verify_cache(self.location, self.utterances))

    def get_performance_report(self) -> str:
        """What is stored of this corpus, where, and how much of the disk it takes."""
        return str(take_inventory(self.location, self.utterances))

    def _prepare(
        self,
        num_workers: int | None,
        overwrite: bool,
        features: bool = True,
        tokens: bool = True,
    ) -> PrepareReport:
        with self.profiler.profile_operation("prepare"):
            return prepare(
                self.utterances,
                self.location,
                workers=num_workers or self.config.data.num_workers,
                overwrite=overwrite,
                verify=self.config.data.cache_verification,
                progress=self.progress,
                features=features,
                tokens=tokens,
            )


def _own_config(config: DataConfig | XTTSConfig) -> XTTSConfig:
    """A copy, so that what is changed here stays here."""
    if isinstance(config, DataConfig):
        return XTTSConfig(data=config)
    config.check()
    return config.replace()
