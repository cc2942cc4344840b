"""Mels to samples: by Griffin-Lim or by a trained vocoder, whole or in pieces as they come."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from myxtts.audio.griffin_lim import griffin_lim
from myxtts.config.audio_spec import AudioSpec
from myxtts.errors import UserError
from myxtts.inference.errors import SynthesisError, check_known

if TYPE_CHECKING:
    from myxtts.checkpoints.vocoders import TrainedVocoder

AUTO, GRIFFIN_LIM, ISTFT, HIFIGAN = "auto", "griffin_lim", "istft", "hifigan"
NAMES = (AUTO, GRIFFIN_LIM, ISTFT, HIFIGAN)


class Vocoder(Protocol):
    """Log-mels [frames, mels] to samples [frames * hop_length]."""

    name: str

    def __call__(self, mel: np.ndarray, spec: AudioSpec, seed: int) -> np.ndarray: ...


class GriffinLim:
    """The vocoder that nobody has to train."""

    name = GRIFFIN_LIM

    def __call__(self, mel: np.ndarray, spec: AudioSpec, seed: int) -> np.ndarray:
        return griffin_lim(mel, spec, seed)


class NeuralVocoder:
    """A trained vocoder, compiled once for mels of all lengths."""

    def __init__(self, trained: "TrainedVocoder", spec: AudioSpec):
        import tensorflow as tf

        trained.check(spec)
        self.name, self.spec = trained.kind, spec
        self.is_clocked = trained.kind == ISTFT
        self.model = trained.model if self.is_clocked else _folded(trained.model)
        mels = tf.TensorSpec([None, None, spec.n_mels], tf.float32)
        if self.is_clocked:
            number, phase = tf.TensorSpec([], tf.int32), tf.TensorSpec([None], tf.float32)
            self._run = tf.function(self._clocked, input_signature=[mels, number, phase, number])
        else:
            self._run = tf.function(self._plain, input_signature=[mels])

    def __call__(self, mel: np.ndarray, spec: AudioSpec, seed: int) -> np.ndarray:
        if len(mel) == 0:
            return np.zeros(0, np.float32)
        if not self.is_clocked:
            return check_samples(self._run(mel[None])[0].numpy(), self.name)
        said = self._run(mel[None], 0, np.zeros(1, np.float32), seed)
        return check_samples(said["waveform"][0].numpy(), self.name)

    def stream(self, mels: Iterable[np.ndarray], seed: int = 0) -> Iterator[np.ndarray]:
        """Samples of mels that come in pieces: put together, those of the whole.

        What is said lags behind what has come by `context_frames`, since that decides about it.
        """
        context = self.model.context_frames
        known = np.zeros((0, self.spec.n_mels), np.float32)
        first, done, phase = 0, 0, np.zeros(1, np.float32)  # frame of known[0], of what is next
        for mel in _ended(mels):
            is_last = mel is None
            known = known if is_last else np.concatenate([known, mel.astype(np.float32)])
            ready = first + len(known) - (0 if is_last else context)
            if ready > done:
                samples, phase = self._piece(
                    known, done - first, ready - first, phase, first + seed
                )
                yield check_samples(samples, self.name)
                done = ready
            spare = max(0, done - context - first)
            known, first = known[spare:], first + spare

    def _piece(self, known, start: int, stop: int, phase, first_frame: int):
        """The samples of some frames, and what the clock shows behind them."""
        hop = self.spec.hop_length
        if not self.is_clocked:
            return self._run(known[None])[0, start * hop : stop * hop].numpy(), phase
        said = self._run(known[None], start, phase, first_frame)
        samples = said["waveform"][0, start * hop : stop * hop].numpy()
        behind = said["clock"][:, stop].numpy() if stop < len(known) else phase
        return samples, behind

    def _plain(self, mel):
        return self.model(mel)

    def _clocked(self, mel, anchor, phase, first_frame):
        return self.model(mel, anchor=anchor, phase=phase, first_frame=first_frame)


def check_samples(samples: np.ndarray, vocoder: str) -> np.ndarray:
    """Return the samples that a vocoder made, or raise where they are no numbers."""
    if not np.isfinite(samples).all():
        raise SynthesisError(f"the vocoder {vocoder} gives no numbers (NaN): choose another one")
    return samples


def choose_vocoder(name: str, run: Path, spec: AudioSpec) -> Vocoder:
    """The vocoder of a name, or of a path, for a voice that a run made.

    `auto` is the one that the run itself has trained, and else Griffin-Lim. A name is looked for
    in the run, and HiFi-GAN then among the public weights.
    """
    check_name(name)
    if name == GRIFFIN_LIM:
        return GriffinLim()
    from myxtts.checkpoints.vocoders import (
        find_vocoder,
        load_vocoder,
        named_vocoder,
        public_vocoder,
    )

    if name not in NAMES:
        return NeuralVocoder(load_vocoder(named_vocoder(name)), spec)
    own = find_vocoder(run)
    if own is None and name == AUTO:
        return GriffinLim()
    found = load_vocoder(own) if own is not None else None
    if found is None or name not in (AUTO, found.kind):
        if name == ISTFT:
            raise UserError(
                f"{run} has no istft vocoder: train one with `myxtts train-vocoder --vocoder "
                "istft`, and name its folder"
            )
        found = load_vocoder(public_vocoder())
    return NeuralVocoder(found, spec)


def check_name(name: str) -> None:
    """Refuse what is neither a vocoder's name nor a path that is there."""
    from myxtts.weights import PUBLIC

    if name not in PUBLIC and not Path(name).expanduser().exists():
        check_known(name, NAMES, "vocoder")


def _folded(model):
    from myxtts.models.vocoders.hifigan import folded

    return folded(model)


def _ended(items: Iterable) -> Iterator:
    yield from items
    yield None
