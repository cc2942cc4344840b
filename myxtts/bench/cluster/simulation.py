"""The whole simulation: settle what is asked, measure, forecast, judge and describe."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from myxtts.bench.cluster.figures import Figures
from myxtts.bench.cluster.forecast import Cluster, sweep
from myxtts.bench.cluster.measure import Given, measure
from myxtts.bench.cluster.report import describe
from myxtts.bench.cluster.verdict import judge
from myxtts.config.config import XTTSConfig
from myxtts.data.batches.parts import Share, usual_parts
from myxtts.errors import UserError
from myxtts.monitoring.progress import Progress

RESTART_SECONDS = 60.0
# What the user may say of the hosts; None is not given.
HOSTS = (
    *("workers_per_host", "cores_per_worker", "memory_gb", "failures_per_worker_hour"),
    "restart_seconds",
)


@dataclass(frozen=True)
class Asked:
    """A run to forecast."""

    utterances: int
    workers: int
    given: Given = Given()
    hosts: Mapping[str, float | None] = field(default_factory=dict)

    def host(self, name: str, default: float) -> float:
        value = self.hosts.get(name)
        return default if value is None else value

    @property
    def known(self) -> set[str]:
        """The names of what was given."""
        both = {**vars(self.given), **self.hosts}
        return {name for name, value in both.items() if value is not None}


def forecast(
    config: XTTSConfig, asked: Asked, has_corpus: bool, report: Progress | None = None
) -> str:
    """Forecast a run with these settings, as text."""
    if config.model.speaker_encoder:
        raise UserError(
            "cluster simulate cannot measure a pretrained speaker encoder: switch it off in the "
            "settings (use_pretrained_speaker_encoder: false) to forecast the run without it"
        )
    parts = micro_batches(config, asked.workers)
    size = max(1, round(config.data.batch_size / parts))
    figures = measure(config, size, asked.given, has_corpus, report)
    forecasts = sweep(figures, cluster_of(config, asked, figures))
    return describe(figures, forecasts, judge(figures, forecasts[-1]), asked.known)


def micro_batches(config: XTTSConfig, workers: int) -> int:
    """The parts of each batch; raises where the workers cannot share them."""
    return Share(config.training.micro_batches or usual_parts(workers), 0, workers).parts


def cluster_of(config: XTTSConfig, asked: Asked, figures: Figures) -> Cluster:
    """The cluster that is asked for, whose hosts are like this machine where nobody says else."""
    per_host = int(asked.host("workers_per_host", 1))
    own_cores = asked.hosts.get("cores_per_worker")
    data, training = config.data, config.training
    return Cluster(
        utterances=asked.utterances,
        workers=asked.workers,
        workers_per_host=per_host,
        cores_per_host=figures.cores if own_cores is None else int(own_cores) * per_host,
        memory_per_host=1e9 * asked.host("memory_gb", figures.memory / 1e9),
        batch_size=_utterances_per_batch(config, figures),
        micro_batches=micro_batches(config, asked.workers),
        save_interval=training.save_interval,
        validation_interval=training.validation_interval,
        val_fraction=0.0 if data.val_dataset_path else data.val_fraction,
        failures_per_worker_hour=asked.host("failures_per_worker_hour", 0.0),
        restart_seconds=asked.host("restart_seconds", RESTART_SECONDS),
    )


def _utterances_per_batch(config: XTTSConfig, figures: Figures) -> float:
    """What the limits of a batch let in, on average."""
    data = config.data
    if not data.max_frames_per_batch:
        return data.batch_size
    return min(data.batch_size, max(1.0, data.max_frames_per_batch / figures.frames))
