"""How fast each step from a file to features is, in one thread, next to librosa's log-mel.

python benchmarks/features.py [--seconds 120] [--rounds 7]
"""

import os

# Before NumPy is imported: more threads would make it a comparison of thread pools.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["OMP_NUM_THREADS"] = "1"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import librosa
import numpy as np
import soundfile
import tensorflow as tf

from myxtts.audio.io import read_audio
from myxtts.audio.mel import log_mel, log_mel_tf, mel_and_energy, mel_filterbank
from myxtts.audio.pitch import pitch, pitch_tf
from myxtts.bench import timing
from myxtts.bench.timing import Target
from myxtts.config.audio_spec import AudioSpec

CLIP_SECONDS = 6.57
SPEC = AudioSpec()
_FRAMES = {
    "n_fft": SPEC.n_fft,
    "hop_length": SPEC.hop_length,
    "win_length": SPEC.win_length,
    "center": False,
}


def main() -> None:
    arguments = _parse()
    print("command:", " ".join(["python", *sys.argv]))
    packages = ("numpy", "scipy", "librosa", "soundfile", "soxr", "tensorflow-cpu")
    print("machine:", timing.describe_machine(packages))
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    bar = run(arguments.seconds, arguments.rounds)
    print(f"\n{int(bar.is_met)} of 1 bars met")


def run(seconds: float, rounds: int) -> Target:
    """Measure all steps in turn, print them, and return the bar."""
    clips = make_clips(seconds)
    audio_seconds = sum(map(len, clips)) / SPEC.sample_rate
    with tempfile.TemporaryDirectory() as folder:
        variants = {
            name: lambda work=work: _cpu(work) for name, work in _steps(clips, Path(folder)).items()
        }
        timing.interleaved(variants, 1)  # compiles, and fills tables and caches
        results = timing.interleaved(variants, rounds)
    print(
        f"\n{len(clips)} clips of {CLIP_SECONDS} s at {SPEC.sample_rate} Hz, one thread, "
        f"medians of {rounds} rounds"
    )
    librosas = (results[name] for name in results if name.startswith("librosa"))
    reference = min(librosas, key=statistics.median)
    rows = [_row(name, found, reference, audio_seconds) for name, found in results.items()]
    print(timing.table(("step", "s of audio per CPU-s", "speed over librosa's faster way"), rows))
    print(f"largest difference from librosa's log-mel: {difference(clips[0]):.1e}")
    bar = Target(
        "log_mel, speed over the faster of librosa's log-mels",
        _ratio(reference, results["log_mel"]),
        1.5,
        at_most=False,
    )
    print(bar)
    return bar


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=120.0, help="of audio a round")
    parser.add_argument("--rounds", type=int, default=7)
    return parser.parse_args()


def make_clips(seconds: float) -> list[np.ndarray]:
    """Voiced sounds under an envelope, of the mean length of LJSpeech."""
    rng = np.random.default_rng(5)
    times = np.arange(round(CLIP_SECONDS * SPEC.sample_rate)) / SPEC.sample_rate
    clips = []
    for base in np.linspace(90, 260, max(1, round(seconds / CLIP_SECONDS))):
        phase = 2 * np.pi * np.cumsum(base + 20 * np.sin(4 * times)) / SPEC.sample_rate
        tone = sum(np.sin(k * phase) / k for k in range(1, 13))
        wave = 0.2 * tone * (0.55 - 0.45 * np.cos(20 * times))
        clips.append((wave + 0.01 * rng.standard_normal(len(times))).astype(np.float32))
    return clips


def librosa_log_mel(samples: np.ndarray) -> np.ndarray:
    """The same by librosa's own mel spectrogram, float32 [frames, n_mels]."""
    mel = librosa.feature.melspectrogram(
        y=_padded(samples),
        sr=SPEC.sample_rate,
        power=1.0,
        n_mels=SPEC.n_mels,
        fmin=SPEC.fmin,
        fmax=SPEC.fmax,
        **_FRAMES,
    )
    return np.log(np.maximum(mel, SPEC.floor)).T


def librosa_stft_log_mel(samples: np.ndarray) -> np.ndarray:
    """The same by librosa's transform and a product with ready filters."""
    magnitude = np.abs(librosa.stft(_padded(samples), **_FRAMES))
    return np.log(np.maximum(mel_filterbank(SPEC) @ magnitude, SPEC.floor)).T


def _padded(samples: np.ndarray) -> np.ndarray:
    return np.pad(samples, (SPEC.n_fft - SPEC.hop_length) // 2, mode="reflect")


def difference(samples: np.ndarray) -> float:
    """How far the two log-mels are apart: they must be the same work."""
    return float(np.abs(log_mel(samples, SPEC) - librosa_log_mel(samples)).max())


def _steps(clips: list[np.ndarray], folder: Path) -> dict[str, Callable[[], object]]:
    files = {name: folder / name for name in ("clip.wav", "clip.flac", "clip48k.wav")}
    joined = np.concatenate(clips)
    soundfile.write(files["clip.wav"], joined, SPEC.sample_rate, subtype="PCM_16")
    soundfile.write(files["clip.flac"], joined, SPEC.sample_rate, subtype="PCM_16")
    # The same number of seconds at another rate: what it sounds like does not matter.
    longer = np.resize(joined, round(len(joined) * 48000 / SPEC.sample_rate))
    soundfile.write(files["clip48k.wav"], longer, 48000, subtype="PCM_16")
    batch = tf.constant(np.stack(clips))
    lengths = tf.fill([len(clips)], tf.shape(batch)[1])
    mel_graph = tf.function(lambda: log_mel_tf(batch, SPEC, lengths))
    pitch_graph = tf.function(lambda: pitch_tf(batch, lengths, SPEC, 65.0, 600.0))
    return {
        "librosa melspectrogram": lambda: [librosa_log_mel(clip) for clip in clips],
        "librosa stft and product": lambda: [librosa_stft_log_mel(clip) for clip in clips],
        "log_mel": lambda: [log_mel(clip, SPEC) for clip in clips],
        "mel_and_energy": lambda: [mel_and_energy(clip, SPEC) for clip in clips],
        "log_mel_tf": mel_graph,
        "pitch": lambda: [pitch(clip, SPEC, 65.0, 600.0) for clip in clips],
        "pitch_tf": pitch_graph,
        "decode wav": lambda: read_audio(files["clip.wav"], SPEC.sample_rate),
        "decode FLAC": lambda: read_audio(files["clip.flac"], SPEC.sample_rate),
        "decode wav, resample 48 kHz": lambda: read_audio(files["clip48k.wav"], SPEC.sample_rate),
    }


def _cpu(work: Callable[[], object]) -> float:
    began = timing.cpu_seconds()
    work()
    return timing.cpu_seconds() - began


def _row(
    name: str, found: list[float], reference: list[float], audio_seconds: float
) -> tuple[str, ...]:
    speed = audio_seconds / statistics.median(found)
    return name, f"{speed:,.0f}", f"{_ratio(reference, found):.2f}"


def _ratio(slow: list[float], fast: list[float]) -> float:
    return statistics.median(a / b for a, b in zip(slow, fast, strict=True))


if __name__ == "__main__":
    main()
