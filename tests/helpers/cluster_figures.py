"""Figures and a cluster with round numbers, for tests of forecasts and of what is said of them."""

from myxtts.bench.cluster.figures import MEASURED, Figures, Network, ScaleCost, StepCost
from myxtts.bench.cluster.forecast import Cluster

FIGURES = Figures(
    step=StepCost(fixed=0.1, part=0.4, utterances=4, evaluate=0.02, is_on_cpu=False),
    network=Network(bandwidth=1e9, latency=1e-3, messages=2, is_on_cpu=False),
    scale=ScaleCost(
        read_seconds=1e-5,
        open_seconds=1e-6,
        plan_seconds=1e-8,
        corpus_bytes=1000,
        index_bytes=500,
        plan_bytes=100,
    ),
    gradient_bytes=100e6,
    frames=500.0,
    reader_cpu=0.001,
    prepare_cpu=0.05,
    stored_bytes=100e3,
    mapped_files=4,
    save_seconds=10.0,
    disk_bandwidth=1e9,
    cores=8,
    memory=64e9,
    map_limit=65530,
    origins=dict.fromkeys(
        (
            *("step", "network", "scale", "gradient_bytes", "reader_cpu", "prepare_cpu"),
            *("stored_bytes", "save_seconds", "disk_bandwidth", "map_limit"),
        ),
        MEASURED,
    ),
)
CLUSTER = Cluster(
    utterances=2**20,
    workers=8,
    workers_per_host=4,
    cores_per_host=8,
    memory_per_host=64e9,
    batch_size=64,
    micro_batches=16,
    save_interval=1000,
    validation_interval=500,
    val_fraction=0.25,
)
