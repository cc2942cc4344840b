"""The vocoder `istft` without complex numbers: what an ONNX graph can compute, and the same sound.

Layers, pulses and clock are the vocoder's own. What is written anew here is its arithmetic with
spectra: pairs of real and imaginary parts, in the order of `RealFourier`.
"""

import numpy as np
import tensorflow as tf

from myxtts.audio.mel import edge_padding, hann_window
from myxtts.audio.stft import LEAST_POWER, overlap_add, window_power
from myxtts.export.fourier import RealFourier
from myxtts.models.vocoders.istft import (
    MOMENTUM,
    NOISE_FRAMES,
    QUIET,
    ISTFTVocoder,
    noise_samples,
    product,
)

Spectra = tuple[tf.Tensor, tf.Tensor]  # real and imaginary parts [frames, size]


class RealISTFT:
    """A twin of a vocoder, for one mel at a time."""

    def __init__(self, model: ISTFTVocoder):
        self.model, self.spec = model, model.spec
        self._fourier = fourier = RealFourier(model.spec.n_fft)
        self._parts = -(-model.spec.n_fft // model.spec.hop_length)
        self._filters = model.filters[fourier.order] * fourier.is_bin[:, None]
        self._shares, self._spread = (
            matrix[:, fourier.order] for matrix in (model.shares, model.spread)
        )
        self._signed_spread = self._spread * fourier.sign
        rows = noise_samples(model.spec).reshape(NOISE_FRAMES, -1)
        self._noise = rows.astype(np.float32)

    @property
    def tables(self) -> list[np.ndarray]:
        """What a graph contains besides weights."""
        bands = [self._filters, self._shares, self._spread, self._signed_spread]
        return [*self._fourier.tables, *bands, self._noise, hann_window(self.spec)]

    def __call__(self, mel, anchor, phase, first_frame) -> dict[str, tf.Tensor]:
        """The waveform [1, frames * hop] of a log-mel [1, frames, mels], and the clock [1, frames].

        The clock shows `phase` [1] at the frame `anchor`; the first frame has the place
        `first_frame` in the noise.
        """
        features = self.model.features(mel)
        pitch, mix = self.model.pitch_of(features), self.model.mix_head(features)
        samples, clock = self.model.pulse_train(pitch, anchor, phase, first_frame)
        ends = [edge_padding(self.spec), self._behind]
        pulses = self._spectra(self._frames_of(tf.pad(samples[0], [ends])))
        wanted = tf.exp(mel[0])
        share = 1.0 / window_power(tf.shape(wanted)[0], self.spec)
        spectra = self._filtered(pulses, mix[0], self._noise_of(tf.shape(wanted)[0], first_frame))
        spectra = self._as_loud(spectra, wanted, self._log_gain(features[0]))
        spectra = self._projected(spectra, wanted, share)
        return {"waveform": self._samples_of(spectra, share)[None], "clock": clock}

    def _log_gain(self, features):
        """What the vocoder's head of gains says, in the order of the bins here."""
        head, order = self.model.gain_head, self._fourier.order
        return product(features, tf.gather(head.kernel, order, axis=1)) + tf.gather(
            head.bias, order
        )

    @property
    def _behind(self) -> int:
        return self.spec.n_fft - self.spec.hop_length - edge_padding(self.spec)

    def _filtered(self, pulses: Spectra, mix, noise: Spectra) -> Spectra:
        """Pulses under a complex filter, and noise under a real one."""
        parts = tf.split(mix, 3, axis=-1)
        spreads = self._spread, self._signed_spread, self._spread
        bands = [product(part, spread) for part, spread in zip(parts, spreads, strict=True)]
        real, imaginary, gain = 1.0 + bands[0], bands[1], _softplus(bands[2])
        return (
            real * pulses[0] - imaginary * pulses[1] + gain * noise[0],
            real * pulses[1] + imaginary * pulses[0] + gain * noise[1],
        )

    def _as_loud(self, spectra: Spectra, wanted, log_gain=None) -> Spectra:
        """Each bin times what its bands lack of the wanted magnitudes."""
        magnitude = tf.sqrt(tf.square(spectra[0]) + tf.square(spectra[1]) + LEAST_POWER)
        present = product(magnitude, self._filters)
        gain = product(wanted / tf.maximum(present, QUIET), self._shares)
        gain = gain if log_gain is None else gain * tf.exp(log_gain)
        return spectra[0] * gain, spectra[1] * gain

    def _projected(self, spectra: Spectra, wanted, share) -> Spectra:
        before = None
        for _ in range(self.model.projections):
            samples = self._samples_of(spectra, share)
            now = self._spectra(self._frames_of(self._reflected(samples)))
            pushed = now
            if before is not None:
                pushed = tuple(n + MOMENTUM * (n - b) for n, b in zip(now, before, strict=True))
            spectra, before = self._as_loud(pushed, wanted), now
        return spectra

    def _noise_of(self, count, first_frame) -> Spectra:
        at = tf.math.floormod(tf.range(count + self._parts - 1) + first_frame, NOISE_FRAMES)
        return self._spectra(self._overlapping(tf.gather(self._noise, at)))

    def _spectra(self, frames) -> Spectra:
        return self._fourier.forward(frames * hann_window(self.spec))

    def _samples_of(self, spectra: Spectra, share):
        """Signal [frames * hop] of spectra; `share` is 1 / the power of the windows there."""
        frames = self._fourier.inverse(*spectra) * hann_window(self.spec)
        return overlap_add(frames[None], self.spec)[0] * share

    def _reflected(self, samples):
        """A signal with its ends reflected, however short it is: as `np.pad` does."""
        last = tf.shape(samples)[0] - 1
        at = tf.range(-edge_padding(self.spec), 0), last + 1 + tf.range(self._behind)
        ends = []
        for places in at:
            folded = tf.math.floormod(places, tf.maximum(2 * last, 1))
            ends.append(tf.gather(samples, tf.minimum(folded, 2 * last - folded)))
        return tf.concat([ends[0], samples, ends[1]], axis=0)

    def _frames_of(self, samples):
        """Overlapping frames [frames, n_fft] of a padded signal."""
        hop = self.spec.hop_length
        spare = -(self.spec.n_fft - hop) % hop
        return self._overlapping(tf.reshape(tf.pad(samples, [[0, spare]]), [-1, hop]))

    def _overlapping(self, rows):
        """Frames [frames, n_fft] of the hops [frames + parts - 1, hop] that they consist of."""
        count = tf.shape(rows)[0] - (self._parts - 1)
        frames = tf.concat([rows[part : part + count] for part in range(self._parts)], axis=1)
        return frames[:, : self.spec.n_fft]


def _softplus(x):
    """log(1 + e^x) of operations that onnxruntime has fast code for."""
    return tf.nn.relu(x) + tf.math.log(1.0 + tf.exp(-tf.abs(x)))
