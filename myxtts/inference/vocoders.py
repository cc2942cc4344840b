"""Mels to samples by any vocoder, whole or in chunks as they come."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from myxtts.config.audio_spec import AudioSpec
from myxtts.config.vocoders import VOCODERS
from myxtts.errors import UserError
from myxtts.inference.errors import SynthesisError, check_known
from myxtts.models.vocoders.base import Window
from myxtts.models.vocoders.registry import vocoder_class

if TYPE_CHECKING:
    from myxtts.checkpoints import Voice
    from myxtts.models.vocoders import base

AUTO, GRIFFIN_LIM = "auto", "griffin_lim"


class Vocoder:
    """Log-mels [frames, mels] to samples [frames * hop_length]."""

    def __init__(self, model: "base.Vocoder"):
        self.model, self.name = model.prepared(), model.kind

    def __call__(self, mel: np.ndarray, spec: AudioSpec, seed: int) -> np.ndarray:
        if len(mel) == 0:
            return np.zeros(0, np.float32)
        samples, _ = self.model.generate(mel, seed=seed)
        return check_samples(samples, self.name)

    def stream(self, mels: Iterable[np.ndarray], seed: int = 0) -> Iterator[np.ndarray]:
        """Samples of a mel that comes in chunks: concatenated, those of the whole.

        The output lags behind the input by `context_frames`, which decide about a sample.
        """
        context = int(min(self.model.context_frames, sys.maxsize))  # it may be infinite
        known = np.zeros((0, self.model.n_mels), np.float32)
        first, done, state = 0, 0, None  # frame of known[0], of what is next
        for mel in _ended(mels):
            is_last = mel is None
            known = known if is_last else np.concatenate([known, mel.astype(np.float32)])
            ready = first + len(known) - (0 if is_last else context)
            if ready > done:
                window = Window(done - first, ready - first, first)
                samples, state = self.model.generate(known, state, seed, window)
                yield check_samples(samples, self.name)
                done = ready
            spare = max(0, done - context - first)
            known, first = known[spare:], first + spare


def check_samples(samples: np.ndarray, vocoder: str) -> np.ndarray:
    """Return the samples that a vocoder made, or raise where they are no numbers."""
    if not np.isfinite(samples).all():
        raise SynthesisError(f"the vocoder {vocoder} gives no numbers (NaN): choose another one")
    return samples


def exported_vocoder(name: str, voice: "Voice") -> Vocoder:
    """The vocoder of a name for an exported voice, which needs no TensorFlow."""
    own = voice.vocoder
    if own is not None and name in (AUTO, own.kind):
        return Vocoder(own)
    if name in (AUTO, GRIFFIN_LIM):
        spec = voice.config.data.audio_spec
        return Vocoder(vocoder_class(GRIFFIN_LIM)(spec))  # type: ignore[call-arg]
    has = f"{own.kind} and griffin_lim" if own is not None else "griffin_lim"
    raise SynthesisError(
        f"{voice.folder} is exported with {has}: choose one of these, or export the voice again "
        f"with --vocoder {name}"
    )


def choose_vocoder(name: str, run: Path, spec: AudioSpec) -> Vocoder:
    """The vocoder of a name, or of a path, for a voice that a run made.

    `auto` is the one that the run itself has trained, and else Griffin-Lim. A name is looked for
    in the run, and then among the public weights of its kind.
    """
    from myxtts.checkpoints.vocoders import (
        find_vocoder,
        load_vocoder,
        named_vocoder,
        public_vocoder,
    )

    check_name(name)
    own = find_vocoder(run)
    if name == AUTO and own is None:
        name = GRIFFIN_LIM
    if name in VOCODERS and not vocoder_class(name).has_weights:
        # Without weights, a kind is built from a spec.
        return Vocoder(vocoder_class(name)(spec))  # type: ignore[call-arg]
    if name in names():
        found = load_vocoder(own) if own is not None else None
        if found is None or name not in (AUTO, found.kind):
            if not VOCODERS[name].public:
                raise UserError(
                    f"{run} has no {name} vocoder: train one with `myxtts train-vocoder --vocoder "
                    f"{name}`, and name its folder"
                )
            found = load_vocoder(public_vocoder(VOCODERS[name].public[0], spec))
    else:
        found = load_vocoder(named_vocoder(name, spec))
    found.check(spec)
    return Vocoder(found.model)


def names() -> tuple[str, ...]:
    """What `--vocoder` takes besides paths."""
    return (AUTO, *VOCODERS)


def check_name(name: str) -> None:
    """Raise for what is neither a vocoder's name nor an existing path."""
    from myxtts.weights import PUBLIC

    if name not in PUBLIC and not Path(name).expanduser().exists():
        check_known(name, names(), "vocoder")


def _ended(items: Iterable) -> Iterator:
    yield from items
    yield None
