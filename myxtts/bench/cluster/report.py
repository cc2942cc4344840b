"""A simulated run as text: a table by workers, what it needs, the figures and the verdict."""

import math
from collections.abc import Sequence

from myxtts.bench import timing
from myxtts.bench.cluster.figures import ASSUMED, GIVEN, MEASURED, Figures
from myxtts.bench.cluster.forecast import (
    ADDING_UP,
    CHIEF,
    COMPUTE,
    DISK,
    PLANNING,
    READING,
    Cluster,
    Forecast,
)
from myxtts.bench.cluster.verdict import Finding, short, time

_CAUSES = (COMPUTE, READING, DISK, ADDING_UP, CHIEF, PLANNING)


def describe(
    figures: Figures, forecasts: Sequence[Forecast], findings: Sequence[Finding], given: set[str]
) -> str:
    """Everything that the command prints; `given` names what the user said of the cluster."""
    last = forecasts[-1]
    parts = (
        figures_table(figures, last.cluster, given),
        steps_table(forecasts),
        needs_table(last),
        verdict(findings),
    )
    return "\n\n".join(parts)


def steps_table(forecasts: Sequence[Forecast]) -> str:
    """The milliseconds of a step by cause, and the speed, for each number of workers."""
    header = ("workers", *_CAUSES, "step, ms", "efficiency", "utterances/s", "hours/epoch")
    rows = [
        (
            f"{one.cluster.workers:,}",
            *(_ms(one.causes[cause]) for cause in _CAUSES),
            _ms(one.step_seconds),
            f"{100 * one.efficiency:.0f} %",
            f"{one.utterances_per_second:,.1f}",
            f"{one.epoch_hours:,.3g}",
        )
        for one in forecasts
    ]
    title = "A step in ms by cause. Reading and disk run next to computing: the longest counts."
    return f"{title}\n{timing.table(header, rows)}"


def needs_table(forecast: Forecast) -> str:
    """What the run needs apart from time per step."""
    cluster = forecast.cluster
    hosts = f"{cluster.hosts:,} x {cluster.cores_per_host} cores"
    rows = [
        ("memory of each worker", f"{forecast.worker_bytes / 1e9:,.2f} GB"),
        (
            "memory of each host",
            f"{forecast.host_bytes / 1e9:,.2f} of {cluster.memory_per_host / 1e9:,.1f} GB",
        ),
        ("disk for the cache", f"{forecast.cache_bytes / 1e12:,.3g} TB"),
        ("files that each worker maps", f"{forecast.mappings:,.0f}"),
        (f"preparation on {hosts}", time(forecast.prepare_seconds)),
        ("start of a run: reading, opening, planning", time(forecast.start_seconds)),
    ]
    if math.isfinite(forecast.between_failures):
        rows += [
            ("time between failures", time(forecast.between_failures)),
            ("lost to each failure", time(forecast.lost_to_failures)),
            ("share of the time that is not lost", f"{100 * forecast.availability:.1f} %"),
        ]
    title = f"{short(cluster.utterances)} utterances on {cluster.workers:,} workers need"
    return f"{title}\n{timing.table(('what', 'how much'), rows)}"


def figures_table(figures: Figures, cluster: Cluster, given: set[str]) -> str:
    """The figures that the forecast is made of, and the origin of each."""
    origins = figures.origins
    rows = [(name, value, origins[key]) for name, value, key in _measured_rows(figures)]
    if "latency" in origins and "latency_us" not in given:
        rows.append(("latency of the network", "as usual between hosts", ASSUMED))
    if cluster.hosts > 1 and origins["network"] == MEASURED:
        rows.append(("network between hosts", "as fast as within this machine", ASSUMED))
    if origins["step"] == GIVEN:
        rows.append(("overhead and validation", "faster by as much as the step", ASSUMED))
    rows += [
        (name, value, GIVEN if key in given else ASSUMED)
        for name, value, key in (
            ("workers per host", f"{cluster.workers_per_host}", "workers_per_host"),
            ("cores per host", f"{cluster.cores_per_host}", "cores_per_worker"),
            ("memory per host", f"{cluster.memory_per_host / 1e9:,.1f} GB", "memory_gb"),
            (
                "failures of a worker",
                f"{cluster.failures_per_worker_hour:g} per hour",
                "failures_per_worker_hour",
            ),
            ("restart", f"{cluster.restart_seconds:g} s", "restart_seconds"),
        )
    ]
    rows += [
        ("batches", "from a prepared cache", ASSUMED),
        ("speed of the workers", "all alike", ASSUMED),
        ("sums of gradients", "in a ring, not while computing", ASSUMED),
    ]
    title = (
        f"{cluster.batch_size:,.0f} utterances per batch in {cluster.micro_batches:,} "
        f"micro-batches, {100 * cluster.val_fraction:g} % of the corpus held out; measured with "
        f"{figures.sample}\nmachine: {timing.describe_machine()}"
    )
    return f"{title}\n{timing.table(('figure', 'value', 'origin'), rows)}"


def verdict(findings: Sequence[Finding]) -> str:
    """What stops the run, then what holds it back first and second."""
    fatal = [f"It cannot run: {one}" for one in findings if one.is_fatal]
    slow = [one for one in findings if not one.is_fatal]
    places = ("first", "second")
    held = [f"Held back {place}: {one}" for place, one in zip(places, slow, strict=False)]
    if slow and not slow[0].share:
        held = [str(slow[0])]
    return "\n".join(("Verdict", *(f"  {line}" for line in (*fatal, *held))))


def _measured_rows(figures: Figures) -> list[tuple[str, str, str]]:
    step, network, scale = figures.step, figures.network, figures.scale
    core = " on one core" if step.is_on_cpu else ""
    return [
        (
            "a step",
            f"{_ms(step.fixed)} ms + {_ms(step.part)} ms per {step.utterances:g} utterances{core}",
            "step",
        ),
        (
            "gradients",
            f"{figures.gradient_bytes / 1e6:,.1f} MB in {network.messages:.1f} sums",
            "gradient_bytes",
        ),
        (
            "network",
            f"{8 * network.bandwidth / 1e9:,.2f} Gbit/s, {1e6 * network.latency:,.0f} us",
            "network",
        ),
        ("making batches", f"{1e3 * figures.reader_cpu:.3f} CPU-s per 1,000", "reader_cpu"),
        ("preparation", f"{1e3 * figures.prepare_cpu:,.1f} CPU-s per 1,000", "prepare_cpu"),
        ("cache", f"{figures.stored_bytes / 1e3:,.1f} kB an utterance", "stored_bytes"),
        ("disk", f"{figures.disk_bandwidth / 1e9:,.2f} GB/s", "disk_bandwidth"),
        ("saving", f"{figures.save_seconds:,.2f} s", "save_seconds"),
        (
            "corpus, index and plan",
            f"{scale.corpus_bytes:,.0f} + {scale.index_bytes:,.0f} + {scale.plan_bytes:,.0f} B "
            "an utterance",
            "scale",
        ),
        (
            "reading and opening",
            f"{1e6 * scale.read_seconds:,.1f} + {1e6 * scale.open_seconds:,.1f} us an utterance",
            "scale",
        ),
        (
            "planning a million",
            f"{1e6 * scale.plan_seconds * math.log2(1e6):,.2f} s",
            "scale",
        ),
        ("files mapped at most", f"{figures.map_limit:,}", "map_limit"),
    ]


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:,.1f}"
