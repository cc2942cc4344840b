"""The model: text and a reference recording in, mel out; with the alignment that teaches it.

A token is one symbol of the text. It may be cut into several states, from its beginning to its end;
what is aligned, timed and expanded to frames are these.

In training it is called with a batch that has a `pitch`, with its `reference` [batch, frames, mels]
and `reference_lengths`, the `prior_weight` of the alignment, and for a refiner its `flow_key` and
whether it `refines` yet; it returns a dict (`XTTS.call`). For speaking there are `encode_voice`,
`synthesize` and `synthesize_refined`, compiled once for all shapes.
"""

from dataclasses import asdict

import keras
import tensorflow as tf

from myxtts.config.config import AudioSpec, ModelConfig
from myxtts.models import alignment
from myxtts.models.decoder import build_decoder, scaled_mel
from myxtts.models.expansion import (
    gather_tokens,
    places_in_tokens,
    spread_tokens,
    tokens_of_frames,
)
from myxtts.models.harmonics import Harmonics
from myxtts.models.layers import sequence_mask, serialisable
from myxtts.models.prosody import (
    ENERGY,
    LOG_DURATIONS,
    PITCH,
    Calibration,
    Chance,
    PitchContour,
    ProsodyEmbedding,
    ProsodyPredictor,
    TokenStates,
    scaled_energy,
    scaled_pitch,
)
from myxtts.models.refiner import Refiner
from myxtts.models.segments import DRAWS
from myxtts.models.text_encoder import TextEncoder
from myxtts.models.voice_encoder import VoiceEncoder

# Groups of frames behind the end of speech in which the decoder learns that it has ended.
TAIL_GROUPS = 4
TAIL_FRAMES = 8  # before the end, that speech may turn out to have ended in: .1 s
# A token lasts at most this many frames at a speaking rate of 1: 3.5 s, longer than any pause.
LONGEST_TOKEN = 300
POSITION_FEATURES = 4
VOICING_SLOPE = 8.0


# What is said, in which language and voice, and how fast; and how it is refined.
_SAID = [
    tf.TensorSpec([None, None], tf.int32),
    tf.TensorSpec([None], tf.int32),
    tf.TensorSpec([None], tf.int32),
    tf.TensorSpec([None, None], tf.float32),
    tf.TensorSpec([None], tf.float32),
]
_VARIED = [tf.TensorSpec([], kind) for kind in (tf.int32, tf.float32)]
_REFINED = [*_VARIED, tf.TensorSpec([], tf.int32)]


def build_xtts(
    config: ModelConfig, spec: AudioSpec, vocab_size: int, num_languages: int, num_speakers: int
) -> "XTTS":
    """The model of a configuration, with all of its weights."""
    model = XTTS(config, spec, vocab_size, num_languages, num_speakers, name="xtts")
    model.build()
    return model


@serialisable
class XTTS(VoiceEncoder):
    """Text encoder, alignment, prosody and decoder, under the voice of a reference."""

    def __init__(
        self,
        config: ModelConfig,
        spec: AudioSpec,
        vocab_size: int,
        num_languages: int,
        num_speakers: int,
        **kwargs,
    ):
        super().__init__(config, spec, num_speakers, **kwargs)
        self.vocab_size, self.num_languages = vocab_size, num_languages
        self.reduction, self.token_states = config.decoder_reduction, config.token_states
        dim, n_mels = config.text_encoder_dim, spec.n_mels
        self.text_encoder = TextEncoder(
            vocab_size,
            num_languages,
            dim,
            config.text_encoder_conv_layers,
            config.text_encoder_layers,
            config.text_encoder_heads,
            config.dropout,
            name="text_encoder",
        )
        self.shares_text_voice = config.text_voice == "shared"
        self.states = None
        if config.token_states > 1:
            self.states = TokenStates(dim, config.token_states, name="states")
        self.mu_head = keras.layers.Dense(n_mels, dtype="float32", name="mu")
        # What states of tokens have besides a length; a frame may have a pitch of its own.
        has_contour = config.pitch_contour == "frame"
        self.spoken_as = (ENERGY,) if has_contour else (PITCH, ENERGY)
        self.prosody = ProsodyPredictor(dim, (LOG_DURATIONS, *self.spoken_as), name="prosody")
        self.prosody_embedding = ProsodyEmbedding(dim, name="prosody_embedding")
        self.harmonics = Harmonics(spec)
        self.contour = None
        if has_contour:
            self.contour = PitchContour(dim, self.reduction, name="contour")
            self.calibration = Calibration(name="calibration")
        self.decoder = build_decoder(
            config.decoder_strategy,
            dim=config.decoder_dim,
            num_layers=config.decoder_layers,
            reduction=self.reduction,
            n_mels=n_mels,
            dropout=config.dropout,
        )
        self.refiner = None
        if config.refiner_layers:
            sizes = config.decoder_dim, config.refiner_layers, self.reduction, n_mels
            self.refiner = Refiner(*sizes, name="refiner")

    def build(self, input_shape=None):
        super().build(input_shape)
        dim = self.config.text_encoder_dim
        text, voice = (None, None, dim), (None, self.speaker_embedding_dim)
        tokens, mask = (None, None), (None, None, 1)
        self.text_encoder.build(tokens, mask, (None,), voice)
        if self.shares_text_voice:
            self.text_voice = self.add_weight(
                name="text_voice", shape=(self.speaker_embedding_dim,), initializer="zeros"
            )
        if self.states:
            self.states.build(text)
        self.mu_head.build(text)
        self.prosody.build(text, mask, voice)
        self.prosody_embedding.build((None, None, len(self.spoken_as)))
        width = dim + POSITION_FEATURES
        if self.contour:
            self.contour.build((None, None, width), (None,), voice)
            self.calibration.build()
            width += 2
        frames = (None, None, width + self.harmonics.bands)
        self.decoder.build(frames, (None,), voice, (None, None, self.n_mels))
        if self.refiner:
            self.refiner.build(frames, voice)
        self.built = True

    def call(self, inputs, training=False):
        """The mel of a batch as it would be said along the alignment that fits it best.

        Returns mel [batch, frames + tail, mels] and stop [batch, groups] of the decoder, and the
        frames [batch, frames + tail, width] that it read; mu [batch, states, mels]; frame_states
        and frame_tokens [batch, frames]; durations [batch, states]; the predicted log_durations and
        energy [batch, states] and the true token_energy; pitch and token_pitch likewise, or pitch
        and voicing [batch, frames + tail] where every frame has its own; the voice [batch,
        voice_dim]; output_embedding and reference_embedding [batch, dim] by the same encoder, or
        None where neither is wanted; speaker_logits [batch, speakers], or None of one speaker; flow
        and flow_target (`Refiner.matched`) where there is a `flow_key`.
        """
        text_lengths, mel_lengths = inputs["text_lengths"], inputs["mel_lengths"]
        mel = tf.cast(inputs["mel"], tf.float32)
        embedding = self.embed(inputs)
        voice = self.styled(embedding)
        text, mask = self._encode(
            inputs["tokens"], text_lengths, inputs["language"], voice, training
        )
        text_lengths *= self.token_states
        mu = self.mu_head(text)
        frame_states = self._align(mu, mel, text_lengths, mel_lengths, inputs["prior_weight"])
        num_states = tf.shape(mu)[1]
        durations = alignment.durations(frame_states, mel_lengths, num_states)
        true_prosody = self._true_prosody(inputs, frame_states, num_states)
        predicted = self.prosody(text, mask, voice, training=training)

        room = self._room(tf.shape(mel)[1])
        lengths = mel_lengths + TAIL_GROUPS * self.reduction
        frames = self._frames(text, true_prosody, durations, room, spread_tokens)
        if self.contour:
            contour = self.contour(frames, lengths, voice, training=training)
            predicted |= dict(zip((PITCH, "voicing"), contour, strict=True))
            hertz = inputs["pitch"] * sequence_mask(mel_lengths, tf.shape(mel)[1])
            hertz = tf.pad(hertz, [[0, 0], [0, room - tf.shape(mel)[1]]])
            frames = self._with_contour(frames, scaled_pitch(hertz), hertz > 0.0)
        padded = _held(mel, mel_lengths, room)
        said = self.decoder(frames, lengths, voice, mel=padded, training=training)
        flow = self._flow(inputs, padded, said["mel"], frames, voice, training)
        return {
            **said,
            **predicted,
            "mu": mu,
            "frame_states": frame_states,
            "frame_tokens": frame_states // self.token_states,
            "durations": durations,
            **{f"token_{name}": values for name, values in true_prosody.items()},
            **self.compared_embeddings(said["mel"], inputs, embedding),
            **flow,
            "frames": frames,
            "voice": voice,
            "speaker_logits": self.speaker_head(voice) if self.speaker_head else None,
        }

    def _flow(self, inputs, mel, coarse, frames, voice, training):
        """What the refiner learns from; zeros as long as it does not refine yet."""
        if self.refiner is None or "flow_key" not in inputs:
            return {}
        lengths, key = inputs["mel_lengths"], inputs["flow_key"]

        def matched():
            return self.refiner.matched(mel, coarse, frames, lengths, voice, key, training)

        def nothing():
            size = [DRAWS * tf.shape(lengths)[0], 0, self.n_mels]
            return {"flow": tf.zeros(size), "flow_target": tf.zeros(size)}

        return tf.cond(inputs["refines"], matched, nothing)

    @tf.function(input_signature=_SAID)
    def synthesize(self, tokens, text_lengths, language, voice, speaking_rate):
        """Say tokens: mel [batch, frames, mels], mel_lengths [batch], durations [batch, tokens]."""
        said, _ = self._say(tokens, text_lengths, language, voice, speaking_rate)
        return said

    @property
    def can_vary(self) -> bool:
        """Whether there is a `synthesize_varied`."""
        return self.contour is not None

    @tf.function(input_signature=[*_SAID, *_VARIED])
    def synthesize_varied(
        self, tokens, text_lengths, language, voice, speaking_rate, seed, variation
    ):
        """`synthesize` with a pitch and lengths that vary with the seed, at 1 as recordings do."""
        chance = Chance(tokens, seed, variation)
        said, _ = self._say(tokens, text_lengths, language, voice, speaking_rate, chance)
        return said

    @tf.function(input_signature=[*_SAID, *_REFINED])
    def synthesize_refined(
        self, tokens, text_lengths, language, voice, speaking_rate, seed, temperature, steps
    ):
        """`synthesize`, and refine the mel in so many steps from noise of a seed."""
        said, read = self._say(tokens, text_lengths, language, voice, speaking_rate)
        key = tf.stack([seed, 0])
        mel = self.refiner.refine(
            said["mel"], read["frames"], read["lengths"], voice, key, temperature, steps
        )
        return {**said, "mel": mel}

    def _say(self, tokens, text_lengths, language, voice, speaking_rate, chance=None):
        """What is said, and what the decoder read for it."""
        text, mask = self._encode(tokens, text_lengths, language, voice, False)
        predicted = self.prosody(text, mask, voice)
        lengths = predicted[LOG_DURATIONS]
        if chance:
            varied = self.calibration.varied_lengths(lengths, chance)
            is_calm = tf.equal(chance.temperature, 0.0)
            lengths = tf.where(is_calm, lengths, varied)
            speaking_rate /= tf.where(is_calm, self.calibration.length, 1.0)
        elif self.contour:
            speaking_rate /= self.calibration.length
        durations = whole_durations(lengths, mask[:, :, 0], speaking_rate)
        spoken = tf.reduce_sum(durations, axis=1)
        room = self._room(tf.reduce_max(spoken))
        frames = self._frames(text, predicted, durations, room, gather_tokens)
        tail = TAIL_GROUPS * self.reduction
        if self.contour:
            pitch, voicing = self.contour(frames, spoken + tail, voice)
            # Nearly a step: a frame at the threshold must not depend on how a product is rounded.
            voiced = tf.sigmoid(VOICING_SLOPE * voicing) * sequence_mask(spoken + tail, room)
            calm = self.calibration.widened(pitch, voiced)
            if chance:
                varied = self.calibration.varied(pitch, voiced, chance)
                calm = tf.where(tf.equal(chance.temperature, 0.0), calm, varied)
            frames = self._with_contour(frames, calm, voiced)
        said = self.decoder.generate(frames, spoken + tail, voice)
        lengths = _trimmed(said["stop"], spoken, self.reduction)
        whole = tf.reshape(durations, [tf.shape(tokens)[0], -1, self.token_states])
        durations = tf.reduce_sum(whole, axis=2)
        found = {"mel": said["mel"], "mel_lengths": lengths, "durations": durations}
        return found, {"frames": frames, "lengths": spoken + tail}

    def _encode(self, tokens, text_lengths, language, voice, training):
        mask = sequence_mask(text_lengths, tf.shape(tokens)[1])[:, :, None]
        if self.shares_text_voice:
            voice = tf.broadcast_to(self.text_voice, tf.shape(voice))
        text = self.text_encoder(tokens, mask, language, voice, training=training)
        if not self.states:
            return text, mask
        return self.states(text), tf.repeat(mask, self.token_states, axis=1)

    def _align(self, mu, mel, text_lengths, mel_lengths, prior_weight):
        """The token of each frame on the likeliest monotonic path; no gradient passes here."""
        num_tokens, num_frames = tf.shape(mu)[1], tf.shape(mel)[1]
        scores = alignment.gaussian_scores(mu, scaled_mel(mel))
        prior = alignment.diagonal_prior(text_lengths, mel_lengths, num_tokens, num_frames)
        scores = tf.stop_gradient(scores - prior_weight * prior)
        return alignment.monotonic_alignment(scores, text_lengths, mel_lengths)

    def _true_prosody(self, inputs, frame_tokens, num_tokens):
        """Pitch and energy of each token: the means over its voiced, and over all of its frames."""
        hertz = inputs["pitch"]
        values = {
            PITCH: (scaled_pitch(hertz), hertz > 0),
            ENERGY: (scaled_energy(inputs["energy"]), tf.ones_like(hertz, tf.bool)),
        }
        return {
            name: alignment.token_means(
                values[name][0], frame_tokens, inputs["mel_lengths"], num_tokens, values[name][1]
            )
            for name in self.spoken_as
        }

    def _room(self, num_frames):
        """Frames with a tail behind them, in whole groups."""
        return (-(-num_frames // self.reduction) + TAIL_GROUPS) * self.reduction

    def _frames(self, text, prosody, durations, room, expand):
        """What each frame has to say [batch, room, width]: its token, where it is in it, and the
        token's harmonics unless the frame has a pitch of its own."""
        quantities = tf.stack([prosody[name] for name in self.spoken_as], axis=-1)
        said = text + tf.cast(self.prosody_embedding(quantities), text.dtype)
        if not self.contour:
            said = tf.concat([said, tf.cast(self.harmonics(prosody[PITCH]), said.dtype)], axis=-1)
        tokens = tokens_of_frames(durations, room)
        place = places_in_tokens(durations, tokens)
        return tf.concat([expand(said, tokens), tf.cast(place, said.dtype)], -1)

    def _with_contour(self, frames, pitch, voiced):
        """Frames with their own pitch, its harmonics, and whether they have one."""
        voiced = tf.cast(voiced, tf.float32)[:, :, None]
        own = tf.concat([self.harmonics(pitch), pitch[:, :, None]], axis=-1) * voiced
        return tf.concat([frames, tf.cast(own, frames.dtype), tf.cast(voiced, frames.dtype)], -1)

    def get_config(self):
        sizes = ("vocab_size", "num_languages", "num_speakers")
        return {
            **super().get_config(),
            "config": asdict(self.config),
            "spec": asdict(self.spec),
            **{name: getattr(self, name) for name in sizes},
        }

    @classmethod
    def from_config(cls, config):
        own = {"config": ModelConfig(**config["config"]), "spec": AudioSpec(**config["spec"])}
        return cls(**{**config, **own})


def whole_durations(log_durations, mask, speaking_rate):
    """Frames per token: at least one each, since every token has had one in training.

    Ends are rounded, not lengths, so that what one token loses its neighbour gains.
    """
    # A NaN counts as one frame: its mel is NaN too, and synthesis rejects that.
    log_durations = tf.where(tf.math.is_nan(log_durations), 0.0, log_durations)
    frames = tf.exp(tf.minimum(log_durations, tf.math.log(float(LONGEST_TOKEN)))) * mask
    # In float32 the sum of a long sentence would depend on the order of its additions.
    exact = tf.cast(frames / speaking_rate[:, None], tf.float64)
    ends = tf.cast(tf.round(tf.cumsum(exact, axis=1)), tf.float32)
    whole = ends - tf.pad(ends[:, :-1], [[0, 0], [1, 0]])
    return tf.cast(tf.maximum(whole, 1.0) * mask, tf.int32)


def _trimmed(stop, spoken, reduction):
    """Lengths [batch] up to the end that the stop head predicts, near the end of the text."""
    groups = tf.shape(stop)[1]
    at = tf.range(groups)[None, :]
    last = -(-spoken // reduction)[:, None]
    # A stop in mid-sentence does not count: only in the tail, and in as many frames before it, but
    # in no more than the last quarter.
    before = tf.minimum(-(-TAIL_FRAMES // reduction), last // 4)
    is_end = (at >= last - before - 1) & (at < last + TAIL_GROUPS) & (stop > 0.0)
    first = tf.reduce_min(tf.where(is_end, at, groups), axis=1)
    ends = tf.where(first < groups, (first + 1) * reduction, spoken)
    return tf.maximum(tf.minimum(ends, spoken + TAIL_GROUPS * reduction), 1)


def _held(mel, lengths, room):
    """Mels [batch, room, mels] that repeat their last frame behind their ends."""
    at = tf.minimum(tf.range(room)[None, :], tf.maximum(lengths, 1)[:, None] - 1)
    return tf.gather(mel, at, batch_dims=1)
