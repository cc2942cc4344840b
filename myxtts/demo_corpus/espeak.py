"""Synthesizes a list of sentences with espeak-ng and writes them as recordings.

The samples depend a little on what the process synthesized before, so the built-in corpus runs
this file as a new process for every fixed chunk of its sentences.
"""

import ctypes
import json
import sys
from io import BytesIO
from pathlib import Path

import espeakng_loader
import numpy as np
import soundfile

SAMPLE_RATE = 22050
SYNCHRONOUS, DONT_EXIT = 2, 0x8000
RATE, PITCH = 1, 3
CHARACTERS, UTF8, CODES = 1, 1, 0x100

Callback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.c_void_p
)


def main(folder: Path) -> None:
    """Do the job on standard input: {"voice", "rate", "pitch", "lines": [[id, sentence], ...]}.

    With "has_codes" what stands in [[ ]] is espeak's own codes of phonemes.
    """
    job = json.load(sys.stdin.buffer)
    voice = EspeakVoice(job["voice"], job["rate"], job["pitch"], job.get("has_codes", False))
    for name, sentence in job["lines"]:
        samples = level(trim(voice.say(sentence)))
        # Encoded in memory: libsndfile does not say why a write failed.
        wav = BytesIO()
        soundfile.write(wav, samples, SAMPLE_RATE, subtype="PCM_16", format="WAV")
        (folder / f"{name}.wav").write_bytes(wav.getvalue())


class EspeakVoice:
    """espeak-ng, opened once with one voice; `say` gives its samples."""

    def __init__(self, voice: str, rate: int, pitch: int, has_codes: bool = False):
        self._flags = UTF8 | CODES if has_codes else UTF8
        self._library = ctypes.CDLL(espeakng_loader.get_library_path())
        self._chunks: list[np.ndarray] = []
        data = espeakng_loader.get_data_path()
        found = self._library.espeak_Initialize(SYNCHRONOUS, 0, data.encode(), DONT_EXIT)
        if found != SAMPLE_RATE:
            raise RuntimeError(f"espeak-ng could not open its data in {data} (it answered {found})")
        self._callback = Callback(self._take)
        self._library.espeak_SetSynthCallback(self._callback)
        if self._library.espeak_SetVoiceByName(voice.encode()) != 0:
            raise RuntimeError(f"espeak-ng has no voice {voice!r}")
        self._library.espeak_SetParameter(RATE, rate, 0)
        self._library.espeak_SetParameter(PITCH, pitch, 0)

    def say(self, sentence: str) -> np.ndarray:
        """Return the int16 samples of a sentence."""
        self._chunks.clear()
        # The breath of a voice is noise, which espeak-ng would seed with the time.
        self._library.espeak_ng_SetRandSeed(ctypes.c_long(1))
        text = sentence.encode("utf-8") + b"\0"
        self._library.espeak_Synth(text, len(text), 0, CHARACTERS, 0, self._flags, None, None)
        self._library.espeak_Synchronize()
        if not self._chunks:
            raise RuntimeError(f"espeak-ng said nothing for {sentence!r}")
        return np.concatenate(self._chunks)

    def _take(self, samples, count: int, _events) -> int:
        if samples and count:
            self._chunks.append(np.ctypeslib.as_array(samples, (count,)).copy())
        return 0


def trim(samples: np.ndarray, silence: float = 0.1) -> np.ndarray:
    """Cut or pad both ends to the same short silence."""
    loud = np.flatnonzero(np.abs(samples.astype(np.int32)) > 100)
    if not len(loud):
        raise RuntimeError("espeak-ng gave only silence")
    pause = np.zeros(round(silence * SAMPLE_RATE), np.int16)
    return np.concatenate([pause, samples[loud[0] : loud[-1] + 1], pause])


def level(samples: np.ndarray, peak: float = 0.7) -> np.ndarray:
    """Scale int16 samples to floats whose peak is at -3 dBFS."""
    return samples * (peak / np.abs(samples.astype(np.float64)).max())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
