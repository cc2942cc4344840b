"""What HiFi-GAN V1 costs in torch, as its authors define it, weight normalisation folded away.

python hifigan_in_torch.py MELS CHECKPOINT [--rounds 3]

MELS is an npz of log-mels one behind the other, `mels` [frames, 80], and their `lengths`. The last
word printed is the least CPU time of a round through all of them, in seconds, on one core.
"""

import argparse
import os
import time
from pathlib import Path

MELS, WIDTH = 80, 512
RATES, KERNELS = (8, 8, 2, 2), (16, 16, 4, 4)
BLOCK_KERNELS, DILATIONS = (3, 7, 11), (1, 3, 5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mels", type=Path)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # before torch starts its threads
    costs = torch_costs(args.mels, args.checkpoint, args.rounds)
    print(f"CPU-seconds, at most {costs[-1]:.4f}, at least {costs[0]:.4f}")


def torch_costs(mels: Path, checkpoint: Path, rounds: int) -> list[float]:
    """Return the CPU-seconds of each round, sorted."""
    import numpy as np
    import torch

    torch.set_num_threads(1)
    vocode = generator(checkpoint)
    with np.load(mels) as found:
        parts = np.split(found["mels"], np.cumsum(found["lengths"])[:-1])
    inputs = [torch.from_numpy(part.T[None].copy()) for part in parts]
    with torch.inference_mode():
        for one in inputs[:2]:
            vocode(one)
        return sorted(_cpu_seconds(vocode, inputs) for _ in range(rounds))


def _cpu_seconds(vocode, inputs) -> float:
    began = time.process_time()
    for one in inputs:
        vocode(one)
    return time.process_time() - began


def generator(checkpoint: Path):
    """The original's network with weight normalisation folded away by torch itself."""
    import torch
    from torch import nn
    from torch.nn import functional as F
    from torch.nn.utils import remove_weight_norm, weight_norm

    def conv(inputs: int, outputs: int, kernel: int, dilation: int = 1):
        padding = dilation * (kernel - 1) // 2
        return weight_norm(nn.Conv1d(inputs, outputs, kernel, padding=padding, dilation=dilation))

    class Block(nn.Module):
        def __init__(self, width: int, kernel: int):
            super().__init__()
            self.convs1 = nn.ModuleList(conv(width, width, kernel, d) for d in DILATIONS)
            self.convs2 = nn.ModuleList(conv(width, width, kernel) for _ in DILATIONS)

        def forward(self, x):
            for first, second in zip(self.convs1, self.convs2, strict=True):
                x = x + second(F.leaky_relu(first(F.leaky_relu(x, 0.1)), 0.1))
            return x

    class Generator(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv_pre = conv(MELS, WIDTH, 7)
            widths = [WIDTH >> (stage + 1) for stage in range(len(RATES))]
            self.ups = nn.ModuleList(
                weight_norm(nn.ConvTranspose1d(2 * w, w, k, r, padding=(k - r) // 2))
                for w, k, r in zip(widths, KERNELS, RATES, strict=True)
            )
            self.resblocks = nn.ModuleList(Block(w, k) for w in widths for k in BLOCK_KERNELS)
            self.conv_post = conv(widths[-1], 1, 7)

        def forward(self, mel):
            x = self.conv_pre(mel)
            for stage, up in enumerate(self.ups):
                x = up(F.leaky_relu(x, 0.1))
                blocks = self.resblocks[3 * stage : 3 * stage + 3]
                x = sum(block(x) for block in blocks) / len(blocks)
            return torch.tanh(self.conv_post(F.leaky_relu(x)))[:, 0]

    network = Generator()
    network.load_state_dict(torch.load(checkpoint, map_location="cpu")["generator"])
    for module in network.modules():
        if hasattr(module, "weight_g"):
            remove_weight_norm(module)
    return network.eval()


if __name__ == "__main__":
    main()
