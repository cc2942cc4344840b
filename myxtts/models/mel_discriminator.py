"""A network that tells recorded mels from predicted ones, by patches of some frames and bands."""

import keras

# Three layers that halve frames and bands, and one that does not: a score sees 61 frames and bands.
CHANNELS = (16, 32, 64, 64)
KERNELS = (5, 5, 5, 3)
STRIDES = (2, 2, 2, 1)


def build_mel_discriminator(n_mels: int) -> keras.Model:
    """Scaled mels [batch, frames, mels] -> scores [batch, frames / 8, mels / 8, 1] and activations.

    The activations of its layers are what a decoder is asked to match.
    """
    x = mel = keras.Input((None, n_mels), name="mel")
    x = keras.layers.Reshape((-1, n_mels, 1), name="image")(x)
    activations = []
    for number, (channels, kernel, stride) in enumerate(
        zip(CHANNELS, KERNELS, STRIDES, strict=True)
    ):
        x = keras.layers.Conv2D(
            channels, kernel, stride, padding="same", dtype="float32", name=f"conv_{number}"
        )(x)
        # A leaky ReLU whose gradient is one product. (TensorFlow fails to fuse Keras's layer.)
        x = x * keras.ops.stop_gradient(keras.ops.where(x > 0.0, 1.0, 0.2))
        activations.append(x)
    score = keras.layers.Conv2D(1, 3, padding="same", dtype="float32", name="score")(x)
    return keras.Model(mel, [score, *activations], name="mel_discriminator")
