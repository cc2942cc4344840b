"""A voice without a trained model: every token is a chord of its own, four frames long."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np

from myxtts.config.config import XTTSConfig
from myxtts.text.tokenizer import Tokenizer

FRAMES_PER_TOKEN = 4
DIM = 4


class FakeModel:
    """Answers like the real model, in NumPy, and keeps count of what it was asked for."""

    def __init__(self, n_mels: int = 80, frames_per_token: float = FRAMES_PER_TOKEN):
        self.n_mels, self.frames_per_token = n_mels, frames_per_token
        self.batches: list[tuple[int, ...]] = []
        self.languages: list[int] = []

    wants_embeddings = False

    def styled(self, voice, weights=None):
        return voice

    def encode_voice(self, mel, lengths):
        """The mean of the lowest bands over the true frames."""
        return np.array([row[:n, :DIM].mean(axis=0) for row, n in zip(mel, lengths, strict=True)])

    def synthesize(self, tokens, text_lengths, language, voice, speaking_rate):
        self.batches.append(tuple(int(n) for n in text_lengths))
        self.languages.append(int(language[0]))
        frames = [round(self.frames_per_token / float(rate)) for rate in speaking_rate]
        rows = [
            np.repeat([self._chord(t, v) for t in row[:n]], count, axis=0)
            for row, n, v, count in zip(tokens, text_lengths, voice, frames, strict=True)
        ]
        mel = np.full((len(rows), max(map(len, rows)), self.n_mels), 99.0, np.float32)
        for target, row in zip(mel, rows, strict=True):
            target[: len(row)] = row
        lengths = np.array([len(row) for row in rows], np.int32)
        durations = np.zeros(np.shape(tokens), np.int32)
        for target, count, n in zip(durations, frames, text_lengths, strict=True):
            target[:n] = count
        return {"mel": mel, "mel_lengths": lengths, "durations": durations}

    token_states = 1

    def __call__(self, inputs):
        """Align recordings with texts: every token has as many frames as any other."""
        import tensorflow as tf

        lengths = zip(inputs["mel_lengths"], inputs["text_lengths"], strict=True)
        frame_tokens = np.zeros(inputs["mel"].shape[:2], np.int32)
        for target, (frames, tokens) in zip(frame_tokens, lengths, strict=True):
            target[:frames] = np.arange(frames) * tokens // frames
        durations = np.full(inputs["tokens"].shape, self.frames_per_token, np.float32)
        outputs = {"frame_tokens": frame_tokens, "log_durations": np.log(durations)}
        return {name: tf.convert_to_tensor(value) for name, value in outputs.items()}

    def _chord(self, token: int, voice: np.ndarray) -> np.ndarray:
        mel = np.full(self.n_mels, -6.0, np.float32)
        mel[token % 20 :: 11] = -1.0
        mel[40 : 40 + DIM] = np.clip(voice, -9.0, 0.0)
        return mel


def fake_voice(languages=("en", "fa"), model=None, **settings) -> SimpleNamespace:
    return SimpleNamespace(
        folder=Path("run") / "voice",
        config=XTTSConfig(**{"speaker_embedding_dim": DIM, "use_gst": False, **settings}),
        tokenizer=Tokenizer.build(languages),
        model=model or FakeModel(),
        speakers=("anna", "ben"),
        languages=tuple(languages),
        voices=np.array([[-1, -2, -3, -4], [-4, -3, -2, -1]], np.float32),
        gains=None,
        engine="keras",
        vocoder=None,
    )
