from myxtts.cli import bench


def test_bench_measures_every_loader(myxtts, corpus, monkeypatch):
    monkeypatch.setattr(bench, "QUICK", {"batches": 3, "rounds": 1, "step_ms": (1,)})
    code, out, _ = myxtts("bench", "data", corpus, "--quick", "--batch-size", 4)
    assert code == 0
    assert f"{corpus}: 12 utterances" in out
    for loader in ("cached, native", "cached, host", "runtime", "naive"):
        assert loader in out
    assert "samples/s" in out
    assert out.splitlines()[-1].startswith("Loading is ")


def test_bench_of_too_little_is_refused(myxtts, corpus):
    table = (corpus / "metadata.csv").read_text().splitlines()
    (corpus / "metadata.csv").write_text(table[0] + "\n")
    code, _, err = myxtts("bench", "data", corpus)
    assert code == 2
    assert "too few to measure" in err
