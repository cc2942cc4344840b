"""An exported voice against the trained one and against piper: parity, start, memory, speed.

python benchmarks/export.py RUN [--vocoder NAME] [--piper VOICE.onnx] [--texts 100]

Every figure comes from one run on one machine; the ratios are what counts. Commands are started
several times in turn, on one core and with their modules compiled, as pip leaves them; the least
CPU time is shown, and the median.
"""

import argparse
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

WRITE_NOTHING = "PYTHONDONTWRITEBYTECODE"
SENTENCE = "The garden was quiet, and nobody had expected the letter so early in the morning."
WORDS = (
    "one two three four five six seven eight nine ten garden letter morning window river".split()
)
STARTS = 9  # the first is not counted: it compiles
SPEAK_PACKAGES = (
    *("numpy", "packaging", "psutil", "PyYAML", "rich", "safetensors", "soundfile"),
    *("soxr", "threadpoolctl", "onnxruntime", "flatbuffers", "protobuf", "cffi", "pycparser"),
    *("markdown-it-py", "mdurl", "Pygments"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", help="a run with a voice, or the voice")
    parser.add_argument("--vocoder", default="auto")
    parser.add_argument("--piper", help="a medium voice of piper to compare with")
    parser.add_argument("--texts", type=int, default=100)
    args = parser.parse_args()
    one_core = {*list(os.sched_getaffinity(0))[:1]}
    os.sched_setaffinity(0, one_core)
    with tempfile.TemporaryDirectory() as folder:
        exported = Path(folder) / "exported"
        command = ["export", "--voice", args.run, "--vocoder", args.vocoder, "--to", "onnx"]
        subprocess.run(myxtts(*command, "-o", str(exported)), check=True)
        start_up(args, exported, Path(folder))
        installed()
        measured(args, exported)


def myxtts(*words: str) -> list[str]:
    return [sys.executable, "-m", "myxtts.cli.main", *words]


def start_up(args: argparse.Namespace, exported: Path, folder: Path) -> None:
    """From the shell to a finished wav of one sentence."""
    said = ["--text", SENTENCE, "-o", str(folder / "said.wav")]
    commands = {
        "onnx": myxtts("synthesize", "--voice", str(exported), *said),
        "tensorflow": myxtts("synthesize", "--voice", args.run, "--vocoder", args.vocoder, *said),
    }
    if args.piper:
        file = ["-f", str(folder / "piper.wav")]
        commands["piper"] = [sys.executable, "-m", "piper", "-m", args.piper, *file, "--", SENTENCE]
    rounds = [[cost(command) for command in commands.values()] for _ in range(STARTS)][1:]
    found = {}
    for name, costs in zip(commands, zip(*rounds, strict=True), strict=True):
        seconds, memory = (sorted(one) for one in zip(*costs, strict=True))
        found[name] = seconds[0], memory[0]
        print(
            f"cold start, {name:10}: {seconds[0]:6.2f} CPU-s, median {median(seconds):.2f}, "
            f"{memory[0] / 1e3:5.0f} MB resident"
        )
    onnx = found["onnx"][0]
    print(f"cold start, onnx / tensorflow: {onnx / found['tensorflow'][0]:.3f} (target 1/6)")
    if "piper" in found:
        print(f"cold start, onnx / piper: {onnx / found['piper'][0]:.2f} (target 1)")


def cost(command: list[str]) -> tuple[float, int]:
    """CPU seconds and the largest resident size in kB of a command."""
    compiled = {name: value for name, value in os.environ.items() if name != WRITE_NOTHING}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    process = subprocess.Popen(command, env=compiled, **quiet)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(command)} failed")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def installed() -> None:
    """The size of what `myxtts[speak]` brings, as far as it is installed here."""
    from importlib.metadata import PackageNotFoundError, files

    total = 0
    for package in SPEAK_PACKAGES:
        try:
            paths = files(package) or []
        except PackageNotFoundError:
            print(f"installed size: {package} is not installed, and not counted")
            continue
        total += sum(p.size or 0 for p in paths)
    print(f"installed size of myxtts[speak]: {total / 1e6:.0f} MB (target 200)")


def measured(args: argparse.Namespace, exported: Path) -> None:
    """Parity, CPU per second of speech after start-up, and the time to the first sound."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    from myxtts.inference.synthesizer import Synthesizer
    from myxtts.workflows.exports.common import speaker
    from myxtts.workflows.parity import choose_cases, compare

    onnx = Synthesizer.load(exported)
    print(f"speed, onnx      : {speed(onnx):.4f} CPU-s per second of speech")
    began = time.monotonic()
    next(onnx.stream(" ".join([SENTENCE] * 200)))
    first = time.monotonic() - began
    print(f"streaming: first sound after {first:.3f} s (target .25)")
    if args.piper:
        print(f"speed, piper     : {piper_speed(args.piper):.4f} CPU-s per second of speech")
    trained = Synthesizer.load(args.run, args.vocoder)
    print(f"speed, tensorflow: {speed(trained):.4f} CPU-s per second of speech")
    cases = choose_cases(trained.voice)
    more = [(number, cases[number % len(cases)]) for number in range(args.texts)]
    from dataclasses import replace

    varied = [replace(one, text=f"{WORDS[n % len(WORDS)]}. {one.text}") for n, one in more]
    has_graph = trained.vocoder.model.has_weights
    parity = compare(varied, speaker(trained), speaker(onnx), has_graph)
    print(f"parity: {parity}")
    print(json.dumps(parity.as_dict()))


def speed(synthesizer) -> float:
    """The least CPU seconds per second of speech, of one sentence at a time."""
    synthesizer.speak(SENTENCE)
    return min(timed(lambda: synthesizer.speak(SENTENCE).seconds) for _ in range(10))


def timed(speak) -> float:
    before = resource.getrusage(resource.RUSAGE_SELF)
    seconds = speak()
    after = resource.getrusage(resource.RUSAGE_SELF)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return spent / seconds


def piper_speed(path: str) -> float:
    if importlib.util.find_spec("piper") is None:
        raise SystemExit("piper-tts is not installed")
    from piper import PiperVoice

    voice = PiperVoice.load(path)

    def speak() -> float:
        chunks = list(voice.synthesize(SENTENCE))
        return sum(len(one.audio_float_array) / one.sample_rate for one in chunks)

    speak()
    return min(timed(speak) for _ in range(5))


if __name__ == "__main__":
    main()
