"""Distill-MOS in another interpreter: found, asked, and absent with a reason."""

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from myxtts.config.audio_spec import AudioSpec
from myxtts.errors import UserError
from myxtts.evaluation.evaluator import evaluate
from myxtts.evaluation.metrics.opinions import INTERPRETER, DistillMos
from myxtts.evaluation.metrics.session import Judges, Sentence, Subject
from myxtts.evaluation.metrics.table import OPINION, RECORDED, SPEECH

SPEC = AudioSpec()
# Packages that rate a recording by its length in seconds, on arrays that stand for tensors.
DISTILLMOS = """
class ConvTransformerSQAModel:
    def __init__(self):
        print("weights loaded")
    def eval(self):
        return self
    def __call__(self, samples):
        return [Score(samples.shape[1] / 16000)]
class Score(float):
    def item(self):
        return float(self)
"""
TORCH = """
import contextlib
from_numpy = lambda array: array
no_grad = contextlib.nullcontext
"""


@pytest.fixture
def interpreter(tmp_path) -> str:
    """A python whose distillmos and torch are stand-ins."""
    packages = tmp_path / "packages"
    (packages / "distillmos-1.2.3.dist-info").mkdir(parents=True)
    facts = "Metadata-Version: 2.1\nName: distillmos\nVersion: 1.2.3\n"
    (packages / "distillmos-1.2.3.dist-info" / "METADATA").write_text(facts)
    (packages / "distillmos.py").write_text(DISTILLMOS)
    (packages / "torch.py").write_text(TORCH)
    program = tmp_path / "python"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{packages}" exec "{sys.executable}" "$@"\n')
    program.chmod(0o755)
    return str(program)


def test_it_is_found_in_the_interpreter_that_the_environment_names(interpreter, monkeypatch):
    monkeypatch.setenv(INTERPRETER, interpreter)
    assert DistillMos.find().name == "Distill-MOS 1.2.3"


def test_it_rates_each_recording_at_16_khz_and_no_silence(interpreter):
    samples = np.full(22050, 0.5, np.float32)
    recordings = [(samples, 22050), (np.zeros(22050), 22050), (np.tile(samples, 3), 22050)]
    shown = []
    scores = DistillMos(interpreter, "1").score_many(recordings, lambda *some: shown.append(some))
    assert scores == pytest.approx([1.0, math.nan, 3.0], nan_ok=True)
    assert shown == [(3, 3)]


def test_torch_stays_out_of_this_process():
    code = "import sys, myxtts.evaluation.metrics.opinions; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_sentence_is_rated_next_to_its_recording(interpreter):
    spoken, recorded = np.full(22050, 0.5, np.float32), np.full(44100, 0.5, np.float32)
    subject = Subject("test", "en", SPEC, [Sentence("s", "text", spoken, "anna", recorded)])
    judges = Judges(opinion=DistillMos(interpreter, "1"))
    found = evaluate(subject, judges, metrics=["distill_mos"])
    values = {source: one.tolist() for source, one in found.measures["distill_mos"].values.items()}
    assert values == {SPEECH: [1.0], RECORDED: [2.0]}
    assert found.judges == {OPINION: "Distill-MOS 1"}


def test_without_an_interpreter_it_says_what_to_do(monkeypatch, tmp_path):
    monkeypatch.delenv(INTERPRETER, raising=False)
    with pytest.raises(UserError, match=f"pip install distillmos .* whose python {INTERPRETER}"):
        DistillMos.find()
    monkeypatch.setenv(INTERPRETER, str(tmp_path / "nowhere"))
    with pytest.raises(UserError, match="nowhere cannot be run"):
        DistillMos.find()
    monkeypatch.setenv(INTERPRETER, sys.executable)  # this one has no torch
    with pytest.raises(UserError, match=f"{INTERPRETER}=.* has no distillmos"):
        DistillMos.find()


def test_what_fails_over_there_is_the_reason_here(interpreter, tmp_path):
    Path(tmp_path / "packages" / "torch.py").write_text("raise RuntimeError('no such device')")
    judges = Judges(opinion=DistillMos(interpreter, "1"))
    wave = np.full(22050, 0.5, np.float32)
    subject = Subject("test", "en", SPEC, [Sentence("s", "text", wave)])
    found = evaluate(subject, judges, metrics=["distill_mos"])
    assert found.measures == {}
    assert found.not_measured[OPINION].endswith("RuntimeError: no such device")


@pytest.mark.skipif(INTERPRETER not in os.environ, reason=f"{INTERPRETER} names no interpreter")
def test_the_real_one_rates_noise_as_bad():
    noise = np.random.default_rng(0).normal(0, 0.1, 66150).astype(np.float32)
    assert 1.0 <= DistillMos.find().score_many([(noise, 22050)])[0] < 2.0
