"""The updates of a vocoder: alone against spectra, or against discriminators."""

from collections.abc import Sequence

import keras
import tensorflow as tf

from myxtts.models.vocoders.neural import NeuralVocoder
from myxtts.training.losses import weighted_sum
from myxtts.training.steps import Batch, CompiledStep, Metrics, compile_step
from myxtts.training.vocoder.losses import (
    SpectralLoss,
    adversarial_loss,
    discriminator_loss,
    feature_loss,
    pitch_loss,
)

# As published for HiFi-GAN (Kong et al., 2020); the pitch counts where a vocoder predicts one.
ADVERSARIAL_WEIGHTS = {
    "mel_loss": 45.0,
    "adversarial_loss": 1.0,
    "feature_loss": 2.0,
    "pitch_loss": 2.0,
}
SPECTRAL_WEIGHTS = {"mel_loss": 2.0, "stft_loss": 1.0, "pitch_loss": 2.0}


def generate(model: NeuralVocoder, batch: Batch):
    """What a vocoder generates and what was recorded, without edges; and the loss of its pitch."""
    outputs = model.training_outputs(batch)
    generated, recorded, terms = outputs["waveform"], batch["waveform"], {}
    if "pitch" in outputs:
        terms = {"pitch_loss": pitch_loss(outputs["pitch"], batch["pitch"])}
    if model.edge_frames:
        is_long = tf.shape(batch["mel"])[1] > 4 * model.edge_frames
        edge = tf.where(is_long, model.edge_frames * model.hop, 0)
        inside = slice(edge, tf.shape(generated)[1] - edge)
        generated, recorded = generated[:, inside], recorded[:, inside]
    return generated, recorded, terms


def make_spectral_step(
    model: NeuralVocoder,
    optimizer: keras.optimizers.Optimizer,
    loss: SpectralLoss,
    signature: dict[str, tf.TensorSpec],
    *,
    graph: bool = True,
    xla: bool = False,
    takes_many: bool = False,
) -> CompiledStep:
    """The step (batch, number) -> metrics of a vocoder that learns from spectra alone."""
    optimizer.build(model.trainable_variables)

    def step(batch: Batch, number: tf.Tensor) -> Metrics:
        batch = completed(batch)
        with tf.GradientTape() as tape:
            generated, recorded, terms = generate(model, batch)
            terms = {**spectral_terms(loss, generated, recorded), **terms}
            total, _ = summed(terms, SPECTRAL_WEIGHTS)
        variables = model.trainable_variables
        return updated(
            optimizer, variables, tape.gradient(total, variables), terms, SPECTRAL_WEIGHTS
        )

    return compile_step(step, signature, graph, xla, takes_many=takes_many)


def make_adversarial_step(
    model: NeuralVocoder,
    optimizer: keras.optimizers.Optimizer,
    discriminators: Sequence[keras.Model],
    their_optimizer: keras.optimizers.Optimizer,
    loss: SpectralLoss,
    signature: dict[str, tf.TensorSpec],
    *,
    graph: bool = True,
    xla: bool = False,
    takes_many: bool = False,
) -> CompiledStep:
    """The step in which first the discriminators and then the vocoder make an update."""
    judges = Adversaries(discriminators)
    theirs = judges.variables
    optimizer.build(model.trainable_variables)
    their_optimizer.build(theirs)

    def step(batch: Batch, number: tf.Tensor) -> Metrics:
        batch = completed(batch)
        with tf.GradientTape() as tape:
            generated, recorded, terms = generate(model, batch)
            with tf.GradientTape() as their_tape:
                doubted = judges.doubt(recorded, tf.stop_gradient(generated))
            their_gradients = their_tape.gradient(doubted, theirs)
            with tape.stop_recording():
                their_optimizer.apply(their_gradients, theirs)
            terms = {**judges.terms(loss, generated, recorded), **terms}
            total, _ = summed(terms, ADVERSARIAL_WEIGHTS)
        variables = model.trainable_variables
        gradients = tape.gradient(total, variables)
        metrics = updated(optimizer, variables, gradients, terms, ADVERSARIAL_WEIGHTS)
        return {**metrics, "discriminator_loss": doubted}

    return compile_step(step, signature, graph, xla, takes_many=takes_many)


def make_vocoder_evaluation(
    model: NeuralVocoder,
    loss: SpectralLoss,
    signature: dict[str, tf.TensorSpec],
    *,
    graph: bool = True,
    xla: bool = False,
) -> CompiledStep:
    """The step that scores segments of validation recordings: `loss` is the mel error."""

    def step(batch: Batch, number: tf.Tensor) -> Metrics:
        batch = completed(batch)
        unaided = {**batch, "pitch": tf.zeros_like(batch["pitch"])}
        generated, recorded, _ = generate(model, unaided)
        terms = spectral_terms(loss, generated, recorded)
        return {"loss": terms["mel_loss"], **terms}

    return compile_step(step, signature, graph, xla)


def completed(batch: Batch) -> Batch:
    """The batch in the types of the model: waveforms in float32, between -1 and 1."""
    return {
        **batch,
        "mel": tf.cast(batch["mel"], tf.float32),
        "waveform": tf.cast(batch["waveform"], tf.float32) / 32768.0,
    }


def spectral_terms(loss: SpectralLoss, generated: tf.Tensor, recorded: tf.Tensor) -> Metrics:
    return {
        "mel_loss": loss.mel(generated, recorded),
        "stft_loss": loss.stft(generated, recorded),
    }


class Adversaries:
    """The discriminators together, and what they say of waveforms."""

    def __init__(self, discriminators: Sequence[keras.Model]):
        self.discriminators = discriminators
        self.variables = [x for one in discriminators for x in one.trainable_variables]

    def judge(self, waveform: tf.Tensor) -> list:
        return [part for one in self.discriminators for part in one(waveform, training=True)]

    def doubt(self, recorded: tf.Tensor, generated: tf.Tensor) -> tf.Tensor:
        """Their own loss."""
        # Both in one batch: the graph is smaller by two passes, and takes less time to trace.
        count = tf.shape(recorded)[0]
        scores = [score for score, _ in self.judge(tf.concat([recorded, generated], axis=0))]
        return discriminator_loss(
            [(score[:count], []) for score in scores], [(score[count:], []) for score in scores]
        )

    def terms(self, loss: SpectralLoss, generated: tf.Tensor, recorded: tf.Tensor) -> Metrics:
        """The losses of the vocoder that they judge."""
        of_recorded, of_generated = self.judge(recorded), self.judge(generated)
        return {
            "mel_loss": loss.mel(generated, recorded),
            "adversarial_loss": adversarial_loss(of_generated),
            "feature_loss": feature_loss(of_recorded, of_generated),
        }


def summed(terms: Metrics, weights: dict[str, float]):
    return weighted_sum(terms, {name: weights[name] for name in terms})


def updated(
    optimizer, variables: Sequence, gradients: Sequence, terms: Metrics, weights
) -> Metrics:
    """Apply gradients, and return the metrics of the step."""
    total, weighted = summed(terms, weights)
    norm = tf.linalg.global_norm(gradients)
    rate = optimizer.learning_rate
    optimizer.apply(gradients, variables)
    metrics = {"loss": total, "learning_rate": rate, "gradient_norm": norm, **terms}
    return metrics | {f"weighted/{name}": value for name, value in weighted.items()}
