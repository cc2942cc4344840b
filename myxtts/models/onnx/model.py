"""An exported acoustic model with the methods that a voice speaks and clones by."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from myxtts.models.onnx.graph import Graph

SAID = ("tokens", "text_lengths", "language", "voice", "speaking_rate")
REFINED = ("seed", "temperature", "steps")
VARIED = ("seed", "variation")
SPOKEN = ("mel", "mel_lengths", "durations")


class OnnxSpeakerEncoder:
    """A published speaker encoder: recordings to embeddings."""

    sample_rate = 16000  # of all published encoders

    def __init__(self, kind: str, graph: Graph):
        self.kind = kind
        self._graph = graph

    def embed(self, samples: np.ndarray, sample_rate: int) -> np.ndarray:
        """Return the embedding of a recording [samples] of any length: float32 [dim]."""
        # Only cloning needs it, and it takes a while to import.
        from myxtts.audio.speaker_recipes import RECIPES, embed_recording

        return embed_recording(samples, sample_rate, RECIPES[self.kind], self._run)

    def _run(self, windows: np.ndarray) -> np.ndarray:
        graph = self._graph.check({"features"}, {"embedding"})
        return graph.run(features=windows)["embedding"]


@dataclass(frozen=True)
class PublishedEncoder:
    """Where a model keeps its published encoder, if it has one."""

    speaker_encoder: OnnxSpeakerEncoder


class OnnxModel:
    """What `XTTS` is to a synthesizer, from the graphs of an export.

    `acoustic` says tokens; `reference` embeds mels, or the embeddings of a published encoder;
    `style` exists where the voice has style tokens.
    """

    def __init__(
        self,
        acoustic: Graph,
        reference: Graph,
        style: Graph | None = None,
        speaker_encoder: OnnxSpeakerEncoder | None = None,
    ):
        self._acoustic = acoustic.check(set(SAID), set(SPOKEN))
        self.wants_embeddings = speaker_encoder is not None
        self.published_voice = PublishedEncoder(speaker_encoder) if speaker_encoder else None
        self._reference = reference
        self._style = style.check({"voice", "weights"}, {"styled", "mixed"}) if style else None

    def synthesize(self, *said: Any) -> Mapping[str, np.ndarray]:
        """Say tokens: mel [batch, frames, mels], mel_lengths [batch], durations [batch, tokens]."""
        # Without steps a refiner changes nothing, nor does chance without variation.
        calm = dict.fromkeys((*REFINED, *VARIED), 0)
        return self._acoustic.run(**calm, **dict(zip(SAID, said, strict=True)))

    @property
    def can_vary(self) -> bool:
        """Whether there is a `synthesize_varied`."""
        return VARIED[-1] in self._acoustic.inputs

    def synthesize_varied(self, *said: Any) -> Mapping[str, np.ndarray]:
        """The same with a melody and a tempo that vary with a seed."""
        return self._acoustic.run(**dict(zip((*SAID, *VARIED), said, strict=True)))

    def synthesize_refined(self, *said: Any) -> Mapping[str, np.ndarray]:
        """The same, refined in so many steps from noise of a seed."""
        return self._acoustic.run(**dict(zip((*SAID, *REFINED), said, strict=True)))

    def encode_voice(self, mel: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """The speaker embeddings [batch, voice_dim] of mels."""
        graph = self._reference.check({"mel", "lengths"}, {"voice"})
        return graph.run(mel=mel, lengths=lengths)["voice"]

    def encode_embedding(self, embedding: np.ndarray) -> np.ndarray:
        """The same of a published encoder's embeddings."""
        graph = self._reference.check({"embedding"}, {"voice"})
        return graph.run(embedding=embedding)["voice"]

    def styled(self, voice: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
        """Voices with their style, or with one mixed of the tokens by weights [batch, tokens]."""
        if self._style is None:
            return voice
        if weights is None:
            unused = np.zeros((len(voice), self._style.shapes["weights"][1]))
            return self._style.run(voice=voice, weights=unused)["styled"]
        return self._style.run(voice=voice, weights=weights)["mixed"]
