"""PyTorch's DataLoader over .npy files, in a process without TensorFlow: one line of JSON.

    python benchmarks/torch_dataloader.py LIST BATCH_SIZE WORKERS EPOCHS

LIST is a text file with one path per line. It needs numpy and torch, and nothing of this project,
so that torch may live in an environment of its own.
"""

import json
import resource
import sys
import time

import numpy as np


def main() -> None:
    try:
        import torch
    except ImportError:
        print(json.dumps({"missing": "torch is not installed"}))
        return
    paths = open(sys.argv[1], encoding="utf-8").read().split("\n")
    batch_size, workers, epochs = map(int, sys.argv[2:5])
    loader = torch.utils.data.DataLoader(
        Mels(paths),
        batch_size=batch_size,
        num_workers=workers,
        collate_fn=pad,
        persistent_workers=True,
        prefetch_factor=2,
    )
    cpu, wall = _cpu(), time.perf_counter()
    batches = sum(1 for _ in range(epochs) for _ in loader)
    del loader  # ends the workers: only then does their time count
    result = {
        "utterances": epochs * len(paths),
        "batches": batches,
        "cpu_seconds": _cpu() - cpu,
        "wall_seconds": time.perf_counter() - wall,
    }
    print(json.dumps({"torch": torch.__version__, "cost": result}))


class Mels:
    """The files as a map-style dataset."""

    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return np.load(self.paths[index])


def pad(mels):
    """Stack mels [frames, mels] of several lengths into one padded tensor."""
    import torch

    return torch.nn.utils.rnn.pad_sequence([torch.from_numpy(mel) for mel in mels], True)


def _cpu() -> float:
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


if __name__ == "__main__":
    main()
