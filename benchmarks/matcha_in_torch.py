"""Trains Matcha-TTS for some CPU-seconds, and predicts the mels of unseen texts at each of them.

MATCHA_PYTHON benchmarks/matcha_in_torch.py DATA FOLDER [--budgets 300 600 1000] [--rate 4e-4]

`benchmarks/matcha.py` writes DATA and calls this. MATCHA_PYTHON is an interpreter that has the
package `matcha`. The network, its losses and its inference are the package's own; its loader and
trainer are a plain loop here, so that all that costs CPU time is its training.
"""

import argparse
import os
import random
import resource
import sys
from pathlib import Path
from types import SimpleNamespace

# As shipped, with widths times 5/12 (encoder) and 7/16 (decoder): 3.47 of 18.2 million weights.
SYMBOLS = 178
ENCODER = {
    "n_feats": 80,
    "n_channels": 80,  # of 192
    "filter_channels": 320,  # of 768
    "filter_channels_dp": 107,  # of 256
    "n_heads": 2,
    "n_layers": 6,
    "kernel_size": 3,
    "p_dropout": 0.1,
    "spk_emb_dim": 64,
    "n_spks": 1,
    "prenet": True,
}
DECODER = {
    "channels": [112, 112],  # of 256
    "dropout": 0.05,
    "attention_head_dim": 28,  # of 64
    "n_blocks": 1,
    "num_mid_blocks": 2,
    "num_heads": 2,
    "act_fn": "snakebeta",
}
# What its command line speaks with.
STEPS, TEMPERATURE, LENGTH_SCALE = 10, 0.667, 1.0
CLIP = 5.0
BLANK = 0


def main() -> None:
    asked = _parse()
    sys.path.pop(0)  # this folder has a matcha.py of its own
    os.sched_setaffinity(0, {asked.core})  # before torch starts its threads
    import torch

    torch.set_num_threads(1)
    torch.manual_seed(asked.seed)
    random.seed(asked.seed)
    train, unseen, statistics = read(asked.data)
    model = build(statistics)
    weights = sum(one.numel() for one in model.parameters())
    print(f"Matcha-TTS, {weights:,} weights, batches of {asked.batch}, Adam at {asked.rate}")
    asked.folder.mkdir(parents=True, exist_ok=True)
    for budget, steps, spent in fit(model, train, asked):
        torch.save(model.state_dict(), asked.folder / f"{budget}.pt")
        print(f"{budget}: {steps:,} steps in {spent:.1f} CPU-seconds", flush=True)
    for budget in asked.budgets:
        model.load_state_dict(torch.load(asked.folder / f"{budget}.pt"))
        speak(model, unseen, asked.folder / f"{budget}.npz", asked.seed)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, help="an npz of tokens and log-mels")
    parser.add_argument("folder", type=Path, help="where weights and predicted mels are written")
    parser.add_argument("--budgets", type=int, nargs="+", default=[300, 600, 1000])
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--core", type=int, default=0, help="the core to run on")
    parser.add_argument("--seed", type=int, default=42)
    return parser.parse_args()


def read(path: Path):
    """Training pairs (tokens with blanks between them, normalised mel), unseen texts, mean, std."""
    import numpy as np
    import torch

    with np.load(path) as found:
        parts = {
            name: np.split(found[name], np.cumsum(found[f"{name}_lengths"])[:-1])
            for name in ("tokens", "mels", "unseen")
        }
        mean, std = float(found["mels"].mean()), float(found["mels"].std())
    mels = [torch.from_numpy((mel.T - mean) / std) for mel in parts["mels"]]
    train = list(zip(map(_with_blanks, parts["tokens"]), mels, strict=True))
    return train, list(map(_with_blanks, parts["unseen"])), (mean, std)


def _with_blanks(tokens):
    import torch

    ids = torch.full((2 * len(tokens) + 1,), BLANK, dtype=torch.long)
    ids[1::2] = torch.from_numpy(tokens).long()
    return ids


def build(statistics: tuple[float, float]):
    """The package's network; its parts read their sizes as attributes."""
    from matcha.models.matcha_tts import MatchaTTS

    durations = {"filter_channels_dp": ENCODER["filter_channels_dp"], "kernel_size": 3}
    return MatchaTTS(
        n_vocab=SYMBOLS,
        n_spks=1,
        spk_emb_dim=64,
        n_feats=80,
        encoder=SimpleNamespace(
            encoder_type="RoPE Encoder",
            encoder_params=SimpleNamespace(**ENCODER),
            duration_predictor_params=SimpleNamespace(**durations, p_dropout=0.1),
        ),
        decoder=DECODER,
        cfm=SimpleNamespace(name="CFM", solver="euler", sigma_min=1e-4),
        data_statistics=dict(zip(("mel_mean", "mel_std"), statistics, strict=True)),
        out_size=None,  # as shipped: whole utterances
        prior_loss=True,
    )


def fit(model, train, asked: argparse.Namespace):
    """Train; yield (budget, steps, CPU-seconds of the process) when a budget is spent."""
    import torch

    optimizer = torch.optim.Adam(model.parameters(), lr=asked.rate)
    budgets, steps = sorted(asked.budgets), 0
    while budgets:
        order = random.sample(train, len(train))
        for start in range(0, len(order), asked.batch):
            losses = model(**collate(order[start : start + asked.batch]))[:3]
            optimizer.zero_grad()
            sum(losses).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
            optimizer.step()
            steps += 1
            if steps % 50 == 0:
                named = zip(("duration", "prior", "flow"), losses, strict=True)
                shown = ", ".join(f"{name} {loss.item():.3f}" for name, loss in named)
                print(f"step {steps}, {cpu_seconds():.0f} CPU-s: {shown}", flush=True)
            if cpu_seconds() >= budgets[0]:
                yield budgets.pop(0), steps, cpu_seconds()
                if not budgets:
                    return


def collate(rows) -> dict:
    """Pad tokens and mels as its loader does: frames to a multiple of four."""
    import torch
    from torch.nn.utils.rnn import pad_sequence

    tokens, mels = zip(*rows, strict=True)
    frames = -(-max(mel.shape[1] for mel in mels) // 4) * 4
    padded = torch.zeros(len(mels), mels[0].shape[0], frames)
    for row, mel in zip(padded, mels, strict=True):
        row[:, : mel.shape[1]] = mel
    return {
        "x": pad_sequence(tokens, batch_first=True, padding_value=BLANK),
        "x_lengths": torch.tensor([len(one) for one in tokens]),
        "y": padded,
        "y_lengths": torch.tensor([mel.shape[1] for mel in mels]),
    }


def speak(model, texts, path: Path, seed: int) -> None:
    """Write the log-mels of texts: by the shipped inference, and the encoder's mean alone."""
    import numpy as np
    import torch

    model.eval()
    torch.manual_seed(seed)
    flows, means = [], []
    for ids in texts:
        length = torch.tensor([len(ids)])
        found = model.synthesise(
            ids[None], length, STEPS, temperature=TEMPERATURE, length_scale=LENGTH_SCALE
        )
        mean = found["encoder_outputs"] * model.mel_std + model.mel_mean
        flows.append(found["mel"][0].T.numpy())
        means.append(mean[0].T.numpy())
    lengths = [len(one) for one in flows]
    np.savez(path, flow=np.concatenate(flows), mean=np.concatenate(means), lengths=lengths)


def cpu_seconds() -> float:
    """CPU time of this process since it started, its imports included."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
