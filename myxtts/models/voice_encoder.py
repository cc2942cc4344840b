"""The side of the model that knows voices: a reference recording becomes a speaker embedding."""

import keras
import tensorflow as tf

from myxtts.config.config import AudioSpec, ModelConfig
from myxtts.models.audio_encoder import AudioEncoder
from myxtts.models.decoder import scaled_mel
from myxtts.models.gst import StyleTokens
from myxtts.models.speaker_encoders.published_voice import PublishedVoice


class VoiceEncoder(keras.Model):
    """A reference encoder of its own or a published one, style tokens, and who the speaker is."""

    def __init__(self, config: ModelConfig, spec: AudioSpec, num_speakers: int, **kwargs):
        # The alignment needs its inputs as they are, not rounded to half precision.
        super().__init__(autocast=False, **kwargs)
        self.config, self.spec, self.num_speakers = config, spec, num_speakers
        self.n_mels, self.speaker_embedding_dim = spec.n_mels, config.speaker_embedding_dim
        # Whether the output is embedded too: only the voice similarity loss needs it.
        self.embeds_output = num_speakers > 1
        self.published_voice = self.audio_encoder = None
        dim = config.speaker_embedding_dim
        if config.speaker_encoder:
            kind, is_frozen = config.speaker_encoder, config.freeze_speaker_encoder
            self.published_voice = PublishedVoice(
                kind, dim, spec, is_frozen, name="published_voice"
            )
        else:
            sizes = config.audio_encoder_dim, config.audio_encoder_layers
            self.audio_encoder = AudioEncoder(*sizes, dim, spec.n_mels, name="audio_encoder")
        self.style = None
        if config.use_gst:
            self.style = StyleTokens(
                config.gst_num_style_tokens,
                config.gst_style_token_dim,
                config.gst_style_embedding_dim,
                config.gst_num_heads,
                name="style",
            )
            self.style_to_voice = keras.layers.Dense(dim, dtype="float32", name="style_to_voice")
        self.speaker_head = None
        if num_speakers > 1:  # a single one cannot be confused with another
            self.speaker_head = keras.layers.Dense(num_speakers, dtype="float32", name="speaker")

    def build(self, input_shape=None):
        voice = (None, self.speaker_embedding_dim)
        if self.published_voice:
            self.published_voice.build()
        else:
            self.audio_encoder.build((None, None, self.n_mels), (None,))
        if self.style:
            self.style.build(voice)
            self.style_to_voice.build((None, self.config.gst_style_embedding_dim))
        if self.speaker_head:
            self.speaker_head.build(voice)

    @property
    def wants_embeddings(self) -> bool:
        """Whether references are embeddings of a frozen encoder, and not mels."""
        return self.published_voice is not None and self.published_voice.frozen

    def embed(self, inputs):
        """The speaker embeddings [batch, voice_dim] of references, without a style.

        With a frozen published encoder the inputs have its `reference_embedding` [batch, dim].
        Otherwise they have natural mels, `reference` [batch, frames, mels], and their
        `reference_lengths`.
        """
        if self.wants_embeddings:
            return self.published_voice(inputs["reference_embedding"])
        mel, lengths = inputs["reference"], inputs["reference_lengths"]
        if self.published_voice:
            return self.published_voice(self.published_voice.embed(mel, lengths))
        return self.audio_encoder(scaled_mel(tf.cast(mel, tf.float32)), lengths)

    def styled(self, voice, weights=None):
        """Voices with their style, or with one mixed of the tokens by weights [batch, tokens]."""
        if not self.style:
            return voice
        style = self.style(voice)[0] if weights is None else self.style.from_weights(weights)
        return voice + self.style_to_voice(style)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None, None], tf.float32),
            tf.TensorSpec([None], tf.int32),
        ]
    )
    def encode_voice(self, mel, lengths):
        """`embed` mels, compiled."""
        mel = tf.ensure_shape(mel, [None, None, self.n_mels])
        return self.embed({"reference": mel, "reference_lengths": lengths})

    def encode_embedding(self, embedding):
        """`embed` a published encoder's embeddings."""
        return self.embed({"reference_embedding": embedding})

    def compared_embeddings(self, mel, inputs, embedding):
        """The embeddings of an output and of its reference by one encoder, or None for both."""
        if not self.embeds_output:
            return {"output_embedding": None, "reference_embedding": None}
        lengths = inputs["mel_lengths"]
        if self.published_voice:
            embed = self.published_voice.embed
            reference = embed(inputs["reference"], inputs["reference_lengths"])
            return {"output_embedding": embed(mel, lengths), "reference_embedding": reference}
        output = self.embed({"reference": mel, "reference_lengths": lengths})
        return {"output_embedding": output, "reference_embedding": embedding}
