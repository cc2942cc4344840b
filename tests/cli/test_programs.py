import pytest

from myxtts.cli import programs


def test_it_measures_a_corpus(capsys, corpus):
    argv = ["--test-data-path", str(corpus), "--batch-size", "4", "--num-batches", "6"]
    assert programs.performance(argv) == 0
    out = capsys.readouterr().out
    assert "Average time per batch: " in out
    assert "samples/minute (native reader)" in out


def test_without_a_corpus_it_says_so(capsys):
    assert programs.performance([]) == 2
    assert "./data/ljspeech" in capsys.readouterr().err


def test_it_rejects_too_few_batches(capsys, corpus):
    assert programs.performance(["--test-data-path", str(corpus), "--num-batches", "1"]) == 2
    assert "--num-batches must be at least 2" in capsys.readouterr().err


def test_it_makes_its_own_data(capsys, monkeypatch, tmp_path):
    pytest.importorskip("espeakng_loader")
    monkeypatch.setattr(programs, "TEST_CLAUSES", 4)
    assert (
        programs.performance(["--create-test-data", "--batch-size", "2", "--num-batches", "3"]) == 0
    )
    assert (tmp_path / "data" / "performance_test" / "metadata.csv").is_file()
    assert "Samples per second" in capsys.readouterr().out
