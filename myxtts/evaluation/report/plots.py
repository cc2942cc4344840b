"""Plots of a voice: its learning curve, an alignment, and its mel next to a recording's.

The colours are those of Okabe and Ito, which colour-blind readers can distinguish.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from myxtts.evaluation.extras import import_extra
from myxtts.evaluation.history import History

BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#6e6e6e"
PALE = "#f7fbff"  # where the map "Blues" begins
DOTS_PER_INCH = 110
# Few enough to leave room for the other colours among the 256 of a small PNG.
_MEL_COLOURS = 64
# More symbols than this would overlap along the path.
_READABLE_SYMBOLS = 60


@dataclass(frozen=True, eq=False)
class Example:
    """One unseen sentence: the recording, the model's speech, and the token of each frame."""

    text: str
    symbols: Sequence[str]
    frame_tokens: np.ndarray  # [frames of target_mel]
    target_mel: np.ndarray  # [frames, mels]
    output_mel: np.ndarray  # [frames, mels]
    frame_seconds: float


def write_curve(path: Path, history: History) -> None:
    """Draw the learning curve."""
    figure = new_figure(8, 4)
    draw_curve(figure.subplots(), history)
    save_figure(figure, path)


def write_alignment(path: Path, example: Example) -> None:
    """Draw which token each frame of the recording belongs to."""
    figure = new_figure(8, max(3.0, min(9.0, 1.2 + 0.14 * len(example.symbols))))
    draw_alignment(figure.subplots(), example)
    save_figure(figure, path)


def write_mels(path: Path, example: Example) -> None:
    """Draw the recording's mel above the model's."""
    figure = new_figure(8, 5)
    draw_mels(figure.subplots(2, 1, sharex=True), example)
    save_figure(figure, path)


def write_picture(path: Path, history: History, example: Example) -> Path:
    """Draw all plots into one small PNG."""
    figure = new_figure(11, 6)
    axes = figure.subplots(2, 2)
    draw_curve(axes[0, 0], history)
    draw_alignment(axes[1, 0], example)
    draw_mels(axes[:, 1], example)
    return save_figure(figure, path)


def draw_curve(axes, history: History) -> None:
    """Draw the mel loss over steps, and the score of predicting the mean mel."""
    axes.set_title("Mel loss while learning")
    axes.plot(*_columns(history.mel_loss), color=BLUE, lw=0.8, alpha=0.7, label="training step")
    axes.plot(
        *_columns(history.val_mel_loss), color=ORANGE, marker="o", ms=4, lw=1.5, label="validation"
    )
    if history.mean_mel_loss is not None:
        label = f"always the mean mel: {history.mean_mel_loss:.2f}"
        axes.axhline(history.mean_mel_loss, color=GREY, ls="--", lw=1.2, label=label)
    axes.set(xlabel="step", ylabel="mean distance of log-mels", ylim=(0, None), xlim=(0, None))
    axes.grid(alpha=0.25)
    axes.legend(frameon=False)


def draw_alignment(axes, example: Example) -> None:
    """Draw the path of the alignment: tokens from top to bottom, time from left to right."""
    tokens, frames = len(example.symbols), len(example.frame_tokens)
    path = np.zeros((tokens, frames), np.uint8)
    path[example.frame_tokens, np.arange(frames)] = 1
    axes.set_title("Alignment: which sound the recording makes when")
    axes.imshow(
        path,
        aspect="auto",
        cmap="Blues",
        interpolation="nearest",
        extent=(0, frames * example.frame_seconds, tokens - 0.5, -0.5),
    )
    axes.set(xlabel="seconds", ylabel="token", facecolor=PALE)
    if tokens <= _READABLE_SYMBOLS:
        _name_tokens(axes, example)


def _name_tokens(axes, example: Example) -> None:
    """Write each sound above its part of the path, where nothing else is drawn."""
    axes.set_ylim(top=-0.06 * len(example.symbols))
    for token, symbol in enumerate(example.symbols):
        frames = np.flatnonzero(example.frame_tokens == token)
        if len(frames) and symbol.strip() and not symbol.startswith("<"):
            middle = (frames.mean() + 0.5) * example.frame_seconds
            axes.text(middle, token - 0.6, symbol, fontsize=7, ha="center", va="bottom")


def draw_mels(axes, example: Example) -> None:
    """Draw the recording's mel and the model's on two axes, in the same colours and scale."""
    from matplotlib import colormaps

    mels = (example.target_mel, example.output_mel)
    colours = colormaps["magma"].resampled(_MEL_COLOURS)
    low = float(np.percentile(example.target_mel, 5))
    high = float(example.target_mel.max())
    longest = max(map(len, mels)) * example.frame_seconds
    for axis, mel, title in zip(axes, mels, ("Recording", "MyXTTS"), strict=True):
        axis.imshow(
            mel.T,
            aspect="auto",
            origin="lower",
            cmap=colours,
            interpolation="nearest",
            vmin=low,
            vmax=high,
            extent=(0, len(mel) * example.frame_seconds, 0, mel.shape[1]),
        )
        axis.set(title=title, ylabel="mel band", xlim=(0, longest))
    axes[-1].set_xlabel("seconds")


def _columns(points: Sequence[tuple[int, float]]) -> tuple[list[int], list[float]]:
    return [step for step, _ in points], [value for _, value in points]


def new_figure(width: float, height: float):
    # Without pyplot there is no display to look for and nothing to close.
    matplotlib = import_extra("matplotlib.figure", "matplotlib, which draws plots,", "plots")
    return matplotlib.Figure(figsize=(width, height), layout="constrained")


def save_figure(figure, path: Path) -> Path:
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=DOTS_PER_INCH, format="png")
    _shrink(path)
    return path


def _shrink(path: Path) -> None:
    """Reduce the file to 256 colours, which halves its size without a visible change."""
    from PIL import Image  # matplotlib depends on it

    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    small.save(path, format="png", optimize=True)
