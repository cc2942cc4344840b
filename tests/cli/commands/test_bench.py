import json
from dataclasses import replace

import pytest

from myxtts.bench import acceptance
from myxtts.bench.timing import Target
from myxtts.cli.commands import bench
from tests.helpers.tiny_model import TINY


def test_bench_measures_every_loader(myxtts, corpus, monkeypatch):
    monkeypatch.setattr(bench, "QUICK", {"batches": 3, "rounds": 1, "step_ms": (1,)})
    code, out, _ = myxtts("bench", "data", corpus, "--quick", "--batch-size", 4)
    assert code == 0
    assert f"{corpus}: 12 utterances" in out
    for loader in ("cached, native", "cached, host", "runtime", "naive"):
        assert loader in out
    assert "samples/s" in out
    assert out.splitlines()[-1].startswith("Loading is ")


def test_bench_of_too_little_is_rejectd(myxtts, corpus):
    table = (corpus / "metadata.csv").read_text().splitlines()
    (corpus / "metadata.csv").write_text(table[0] + "\n")
    code, _, err = myxtts("bench", "data", corpus)
    assert code == 2
    assert "too few to measure" in err


@pytest.fixture
def little(monkeypatch):
    """As little as can be measured."""
    effort = acceptance.Effort(
        batches=1, rounds=1, loader_batches=3, loader_rounds=1, step_rounds=1
    )
    monkeypatch.setattr(acceptance, "QUICK", effort)


def test_the_acceptance_test_ends_with_every_target(myxtts, corpus, little, tmp_path):
    file, settings = tmp_path / "figures.json", tmp_path / "tiny.yaml"
    settings.write_text(json.dumps({"model": TINY}))  # which is YAML as well
    code, out, _ = myxtts(
        *("bench", "--quick", "--data", corpus, "--batch-size", 4, "--num-workers", 1),
        *("--simulate-step-ms", 2, "--json", file, "--cache-dir", tmp_path / "caches"),
        *("--config", settings),
    )
    lines = out.splitlines()
    assert lines[0].startswith("command: ") and lines[1].startswith("machine: ")
    for mode in ("precompute", "auto, cache empty at first", "auto, afterwards", "runtime"):
        assert any(line.startswith(f"| {mode} ") for line in lines)
    assert "batches of 4 on a simulated accelerator, 2 ms a step" in out
    assert "busy at 2 ms" in out and "The training step of size tiny" in out
    shown = [line for line in lines if line.startswith("target: ")]
    facts = json.loads(file.read_text())
    assert len(shown) == 13 and (len(facts["bars"]), len(facts["targets"])) == (3, 10)
    unmet = [one["what"] for one in facts["bars"] + facts["targets"] if one["met"] is False]
    assert code == (1 if unmet else 0)
    assert ("NOT met: " + "; ".join(unmet) in lines) == bool(unmet)
    assert lines[-1].endswith("not measured")
    assert [mode["utilisation"] <= 1 for mode in facts["modes"]["modes"]] == 4 * [True]
    assert facts["steps"]["ratio"] == facts["targets"][6]["measured"]
    assert facts["machine"] in out and facts["tensorflow"] in out and facts["step_ms"] == 2
    # Nothing stays behind: neither in the corpus nor where the caches were made.
    assert list((tmp_path / "caches").iterdir()) == []
    assert not (corpus / "cached_features").exists()


@pytest.mark.parametrize(("measured", "code"), [(69.0, 1), (70.0, 0), (None, 0)])
def test_the_exit_code_says_whether_a_target_is_missed(measured, code, monkeypatch, corpus, capsys):
    aim = Target("GPU utilisation", measured, 70, at_most=False, unit="%", note="no GPU here")
    best = Target("device busy", 99.0, 98, at_most=False, unit="%")
    monkeypatch.setattr(acceptance, "measure", lambda *rest: None)
    monkeypatch.setattr(acceptance, "targets", lambda found: [aim])
    monkeypatch.setattr(acceptance, "mode_targets", lambda found: [best])
    assert bench.main(["--data", str(corpus)]) == code
    lines = capsys.readouterr().out.splitlines()
    assert ("NOT met: GPU utilisation" in lines) == bool(code)
    monkeypatch.setattr(acceptance, "mode_targets", lambda found: [replace(best, measured=97.0)])
    assert bench.main(["--data", str(corpus)]) == 1
    assert "NOT met: device busy" in capsys.readouterr().out


def test_the_built_in_corpus_is_made_once_and_kept(monkeypatch, tmp_path):
    pytest.importorskip("espeakng_loader")
    monkeypatch.setattr(acceptance, "CLAUSES", 4)
    measured = []
    monkeypatch.setattr(acceptance, "measure", lambda config, *rest: measured.append(config))
    for name in ("targets", "mode_targets"):
        monkeypatch.setattr(acceptance, name, lambda found: [])
    assert bench.main([]) == 0
    table = tmp_path / "data" / "gpu_benchmark" / "metadata.csv"
    made = table.stat().st_mtime_ns
    assert bench.main(["--batch-size", "4", "--model-size", "small"]) == 0
    assert table.stat().st_mtime_ns == made
    first, second = measured
    assert (first.data.batch_size, first.model.model_size) == (16, "tiny")
    assert (second.data.batch_size, second.model.model_size) == (4, "small")
    assert first.data.dataset_path == second.data.dataset_path == "data/gpu_benchmark"


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (("--simulate-step-ms", "-1"), "--simulate-step-ms must be at least 0, not -1.0"),
        (("--simulate-step-ms", "nan"), "--simulate-step-ms must be at least 0, not nan"),
        (("--simulate-step-ms", "soon"), "invalid float value: 'soon'"),
        (("--json", "nowhere/figures.json"), "nowhere/figures.json cannot be written"),
        (("--json", "."), "cannot be written"),
        (("--data", "nowhere"), "there is no corpus at nowhere"),
        (("--quick", "data"), "options go behind the subject 'data'"),
        (("--config", "some.yaml", "data"), "options go behind the subject 'data'"),
    ],
)
def test_bad_input_is_reported_before_anything_is_measured(myxtts, flags, complaint):
    code, out, err = myxtts("bench", *flags)
    assert (code, out) == (2, "")
    assert complaint in err
