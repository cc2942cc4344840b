"""Writes a tiny LJSpeech corpus of voiced-like signals, for tests that need no real speech."""

from pathlib import Path

import numpy as np
import soundfile

WORDS = (
    "amber bridge candle distant early forest garden hollow island jacket kettle lantern morning "
    "narrow orchard pebble quiet river shadow thunder under velvet window yellow zebra"
).split()


def make_corpus(
    path: Path,
    count: int = 12,
    seed: int = 0,
    rate: int = 22050,
    speakers: int = 1,
    seconds: tuple[float, float] = (0.6, 2.0),
) -> Path:
    """Writes wavs/ID.wav and metadata.csv, and speakers.csv if there are several speakers."""
    path = Path(path)
    (path / "wavs").mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    metadata, speaker_of = [], []
    for number in range(count):
        name = f"utt-{number:04d}"
        speaker = number % speakers
        duration = rng.uniform(*seconds)
        wave = _voiced(rng, duration, rate, base_hz=110.0 * 1.25**speaker)
        soundfile.write(path / "wavs" / f"{name}.wav", wave, rate, subtype="PCM_16")
        text = _text(rng, duration)
        metadata.append(f"{name}|{text}|{text}")
        speaker_of.append(f"{name}|speaker{speaker}")
    _write_lines(path / "metadata.csv", metadata)
    if speakers > 1:
        _write_lines(path / "speakers.csv", speaker_of)
    return path


def _voiced(rng: np.random.Generator, duration: float, rate: int, base_hz: float) -> np.ndarray:
    """Returns harmonics of a gliding pitch under a syllable-like envelope, with a little noise."""
    time = np.arange(round(duration * rate)) / rate
    pitch = base_hz * (1 + 0.1 * np.sin(2 * np.pi * rng.uniform(0.5, 1.5) * time))
    phase = 2 * np.pi * np.cumsum(pitch) / rate
    tone = sum(np.sin(k * phase + rng.uniform(0, 6)) / k for k in range(1, 13))
    envelope = 0.55 - 0.45 * np.cos(2 * np.pi * rng.uniform(2.5, 4.0) * time)
    fade = np.minimum(1, np.minimum(time, time[::-1]) / 0.02)
    wave = (tone * envelope + 0.02 * rng.standard_normal(len(time))) * fade
    return 0.5 * wave / np.abs(wave).max()


def _text(rng: np.random.Generator, duration: float) -> str:
    """Returns a sentence with about as many words as fit the duration, so that tokens < frames."""
    words = rng.choice(WORDS, size=max(1, round(1.6 * duration)))
    return " ".join(words).capitalize() + "."


def _write_lines(path: Path, lines: list[str]) -> None:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
