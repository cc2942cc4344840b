"""What a vocoder is trained for: the spectra of the recording, and to pass for one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import tensorflow as tf

from myxtts.audio.mel import log_mel_tf
from myxtts.audio.stft import magnitude_tf
from myxtts.config.audio_spec import AudioSpec

# Frame and hop of each resolution: fine in time, in between, and fine in frequency.
RESOLUTIONS = ((512, 128), (1024, 256), (2048, 512))
_FLOOR = 1e-5

# What one discriminator says: scores [batch, n], and the activations of its layers.
Judgement = tuple[tf.Tensor, list[tf.Tensor]]


@dataclass(frozen=True)
class SpectralLoss:
    """Distances between what was generated and what was recorded that do not ask for phases."""

    spec: AudioSpec

    def mel(self, generated: tf.Tensor, recorded: tf.Tensor) -> tf.Tensor:
        """The L1 of log-mels over all frequencies, whatever the model's own mel leaves out."""
        spec = replace(self.spec, fmax=self.spec.sample_rate / 2)
        found, wanted = (log_mel_tf(samples, spec)[0] for samples in (generated, recorded))
        return tf.reduce_mean(tf.abs(found - wanted))

    def stft(self, generated: tf.Tensor, recorded: tf.Tensor) -> tf.Tensor:
        """Spectral convergence and the L1 of log-magnitudes, mean of several resolutions.

        As in Parallel WaveGAN (Yamamoto et al., 2020).
        """
        terms = [_resolution(generated, recorded, *one) for one in RESOLUTIONS]
        return tf.add_n(terms) / len(terms)


def pitch_loss(predicted: tf.Tensor, pitch: tf.Tensor) -> tf.Tensor:
    """The mean distance in log-Hz [batch, frames], where the recording has a pitch."""
    is_voiced = tf.cast(pitch > 0, tf.float32)
    off = tf.abs(tf.math.log(predicted) - tf.math.log(tf.maximum(pitch, 1.0)))
    return tf.reduce_sum(is_voiced * off) / tf.maximum(tf.reduce_sum(is_voiced), 1.0)


def discriminator_loss(of_recorded: Sequence[Judgement], of_generated: Sequence[Judgement]):
    """Least squares: 1 for a recording, 0 for what was generated."""
    terms = [
        tf.reduce_mean(tf.square(1.0 - real)) + tf.reduce_mean(tf.square(fake))
        for (real, _), (fake, _) in zip(of_recorded, of_generated, strict=True)
    ]
    return tf.add_n(terms)


def adversarial_loss(of_generated: Sequence[Judgement]) -> tf.Tensor:
    """Least squares: 1 for what was generated, too."""
    return tf.add_n([tf.reduce_mean(tf.square(1.0 - fake)) for fake, _ in of_generated])


def feature_loss(of_recorded: Sequence[Judgement], of_generated: Sequence[Judgement]) -> tf.Tensor:
    """The L1 between the activations of the discriminators, added up over their layers."""
    terms = [
        tf.reduce_mean(tf.abs(tf.stop_gradient(wanted) - found))
        for (_, real), (_, fake) in zip(of_recorded, of_generated, strict=True)
        for wanted, found in zip(real, fake, strict=True)
    ]
    return tf.add_n(terms)


def _resolution(generated: tf.Tensor, recorded: tf.Tensor, frame: int, hop: int) -> tf.Tensor:
    found, wanted = (magnitude_tf(_stft(samples, frame, hop)) for samples in (generated, recorded))
    gap, size = (tf.norm(x, axis=[1, 2]) for x in (wanted - found, wanted))
    logarithms = tf.math.log(wanted + _FLOOR) - tf.math.log(found + _FLOOR)
    return tf.reduce_mean(gap / (size + 1e-3)) + tf.reduce_mean(tf.abs(logarithms))


def _stft(samples: tf.Tensor, frame: int, hop: int) -> tf.Tensor:
    # A segment shorter than a frame is filled up; a longer one loses at most its last half hop.
    return tf.signal.stft(samples, frame, hop, frame, pad_end=True)
