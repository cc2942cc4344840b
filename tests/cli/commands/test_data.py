import numpy as np
import pytest
import soundfile

from tests.helpers.make_corpus import make_corpus


def lines(out: str) -> dict[str, str]:
    """What the summary says, by its titles."""
    pairs = (line.strip().partition("  ") for line in out.splitlines())
    return {title: rest.strip() for title, _, rest in pairs}


def test_check_says_what_a_corpus_is(myxtts, corpus):
    code, out, err = myxtts("data", "check", corpus)
    found = lines(out)
    assert (code, err) == (0, "")
    assert found["understood"].startswith("metadata.csv: a table with |")
    assert found["utterances"].split()[0] == "12"
    assert (found["training"].split()[0], found["validation"].split()[0]) == ("11", "1")
    assert found["dropped"] == "0"
    assert found["sample rates"] == "22,050 Hz: 12"
    assert out.endswith(f"next: myxtts prepare {corpus}\n")


def test_check_writes_nothing(myxtts, corpus):
    before = sorted(corpus.rglob("*"))
    assert myxtts("data", "check", corpus)[0] == 0
    assert sorted(corpus.rglob("*")) == before


def test_check_counts_what_breaks_a_limit(myxtts, corpus):
    wave = np.sin(np.arange(3 * 16000) / 20) / 2
    soundfile.write(corpus / "wavs" / "utt-0003.wav", wave, 16000)
    soundfile.write(corpus / "wavs" / "utt-0004.wav", wave[:800], 16000)
    table = (corpus / "metadata.csv").read_text().splitlines()
    table[5] = f"utt-0005|{'word ' * 20}|{'word ' * 20}"
    (corpus / "metadata.csv").write_text("\n".join(table))
    limits = ("--max-mel-frames", 200, "--max-text-length", 80)
    code, out, _ = myxtts("data", "check", corpus, *limits)
    assert code == 0
    # 3 s at 22,050 Hz are 66,150 samples, or 258 whole hops of 256.
    assert "utt-0003: 258 frames, at most 200 (--max-mel-frames)" in out
    assert "utt-0004: 0.050 s, at least 0.100 s" in out
    assert "utt-0005: 99 characters, at most 80 (--max-text-length)" in out
    assert lines(out)["dropped"].split()[0] == "3"
    assert "16,000 Hz: 2 (resampled to 22,050 Hz)" in out


def test_recordings_below_the_highest_band_are_warned_of_once(myxtts, corpus, tmp_path):
    other = make_corpus(tmp_path / "other", 3, seed=1, seconds=(0.6, 0.8))
    both = ("--data", corpus, "--val-data", other, "--audio", "24k")
    for command in (("data", "check"), ("prepare",)):
        code, out, err = myxtts(*command, *both)
        assert code == 0
        assert err.count("15 of 15 recordings have too few samples a second (22,050 Hz: 15)") == 1
        assert err.count("--audio 22k") == 1
    code, out, _ = myxtts("data", "check", *both)
    assert "22,050 Hz: 12 (resampled to 24,000 Hz)" in out


def test_check_rejects_what_loses_too_much(myxtts, corpus):
    code, out, err = myxtts("data", "check", corpus, "--max-mel-frames", 20)
    assert code == 2
    assert "12 of 12 utterances would be dropped" in err
    assert lines(out)["too long"].split()[0] == "12"


def test_check_looks_at_both_corpora(myxtts, corpus, tmp_path):
    other = make_corpus(tmp_path / "other", 3, seed=1, seconds=(0.6, 0.8))
    code, out, _ = myxtts("data", "check", "--train-data", corpus, "--val-data", other)
    assert code == 0
    counts = [line.split()[1] for line in out.splitlines() if line.startswith("  utterances")]
    assert counts == ["12", "3"]


@pytest.mark.parametrize("words", [("data", "check"), ("prepare",), ("cache", "info")])
def test_without_a_corpus_it_says_where_to_get_one(myxtts, words):
    code, out, err = myxtts(*words)
    assert (code, out) == (2, "")
    assert "./data/ljspeech" in err
    assert "`myxtts download ljspeech`" in err
    assert "`myxtts data demo`" in err


def test_the_default_corpus_needs_no_name(myxtts, tmp_path):
    make_corpus(tmp_path / "data" / "ljspeech", 3, seconds=(0.6, 0.7))
    assert myxtts("data", "check")[0] == 0


def test_two_corpora_are_one_too_many(myxtts, corpus):
    code, _, err = myxtts("data", "check", corpus, "--data", corpus)
    assert code == 2
    assert "named twice" in err


def rewrite(corpus, change) -> None:
    path = corpus / "metadata.csv"
    path.write_text("\n".join(change(path.read_text().splitlines())) + "\n")


def without_metadata(corpus):
    (corpus / "metadata.csv").unlink()


def without_recordings(corpus):
    for path in (corpus / "wavs").iterdir():
        path.unlink()


def with_few_recordings(corpus):
    for path in sorted((corpus / "wavs").iterdir())[:4]:
        path.unlink()


def with_binary_metadata(corpus):
    (corpus / "metadata.csv").write_bytes(np.random.default_rng(0).bytes(5000))


def with_duplicate_ids(corpus):
    rewrite(corpus, lambda table: [*table, *table[:6]])


def climbing_out(corpus):
    rewrite(corpus, lambda table: [f"../../{line}" for line in table])


def with_numbers_for_text(corpus):
    rewrite(corpus, lambda table: [f"{line.split('|')[0]}|12 7 3" for line in table])


@pytest.mark.parametrize(
    "damage, complaint",
    [
        (without_metadata, "no metadata found"),
        (without_recordings, "no recording"),
        (with_few_recordings, "missing recording: 4, such as utt-0000"),
        (with_binary_metadata, "metadata.csv"),
        (with_duplicate_ids, "duplicate id: 6, such as utt-0000"),
        (climbing_out, "outside the corpus: 12"),
        (with_numbers_for_text, "no column holds text"),
    ],
)
@pytest.mark.parametrize("words", [("data", "check"), ("prepare",)], ids=" ".join)
def test_a_bad_corpus_is_rejectd_with_a_reason(myxtts, corpus, words, damage, complaint):
    damage(corpus)
    code, _, err = myxtts(*words, corpus)
    assert code == 2
    assert err.startswith("error: ")
    assert complaint in err
    assert not (corpus / "cached_features").exists()


def test_demo_makes_a_corpus_that_passes_the_check(myxtts, tmp_path):
    pytest.importorskip("espeakng_loader")
    code, out, _ = myxtts("data", "demo", "speech", "--clauses", 3, "--speakers", 1)
    assert (code, out) == (0, "made speech\nnext: myxtts data check speech\n")
    code, out, _ = myxtts("data", "check", "speech")
    assert code == 0
    assert lines(out)["utterances"].split()[0] == "3"


def test_demo_rejects_nonsense(myxtts):
    assert myxtts("data", "demo", "speech", "--language", "tlh")[0] == 2
    code, _, err = myxtts("data", "demo", "speech", "--clauses", 0)
    assert code == 2
    assert "clauses must be at least 1" in err
    code, _, err = myxtts("data", "demo", "--small", "--speakers", 5)
    assert code == 2
    assert "remove --speakers" in err


def test_small_demo_has_the_documented_folders(myxtts, tmp_path):
    pytest.importorskip("espeakng_loader")
    code, out, _ = myxtts("data", "demo", "--small")
    assert code == 0
    for name in ("dataset_train_small", "dataset_val_small"):
        assert (tmp_path / "small_dataset_test" / name / "metadata.csv").is_file()
    assert "next: myxtts data check small_dataset_test/dataset_train_small" in out


def test_download_reports_and_names_the_next_step(myxtts, monkeypatch):
    from myxtts.data.corpus import download

    def fetch(target, progress):
        progress("download", 10**9, 2 * 10**9)
        progress("unpack", 5, 10)
        return target

    monkeypatch.setattr(download, "download_ljspeech", fetch)
    monkeypatch.setattr("myxtts.monitoring.progress.INTERVAL_SECONDS", 0.0)
    code, out, err = myxtts("download", "ljspeech")
    assert code == 0
    assert out == "LJSpeech is in ./data/ljspeech; next: myxtts prepare ./data/ljspeech\n"
    assert "download: 1,000 of 2,000 MB" in err
    assert "unpack: 5 of 10 files" in err


def give_texts(corpus, texts: list[str]) -> None:
    """Give the recordings of a corpus other texts."""
    names = [line.split("|")[0] for line in (corpus / "metadata.csv").read_text().splitlines()]
    lines = [f"{name}|{texts[n % len(texts)]}" for n, name in enumerate(names)]
    (corpus / "metadata.csv").write_text("\n".join(lines), encoding="utf-8")


@pytest.mark.parametrize("words", [("data", "check"), ("prepare", "--num-workers", 1)])
def test_a_corpus_of_another_language_is_warned_of(myxtts, corpus, words):
    give_texts(corpus, ["und das ist nicht so", "wir sind auch da", "es war die alte"])
    code, _, err = myxtts(*words, corpus)
    assert code == 0 and "look like German (de)" in err and "--language de" in err


@pytest.mark.parametrize("words", [("data", "check"), ("prepare",), ("train", "--data")])
def test_a_persian_corpus_without_its_language_is_rejectd_with_the_flag(myxtts, corpus, words):
    give_texts(corpus, ["این کتاب را خواندم", "پس از آن گفتم"])
    code, _, err = myxtts(*words, corpus)
    assert code == 2 and "Persian (fa)" in err and "--language fa" in err
    assert "--max-mel-frames" not in err
