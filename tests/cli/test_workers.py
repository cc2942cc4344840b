"""The flags that share a training among workers: which of them go together."""

import pytest

CORPUS = {"count": 2}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--devices 2 --cluster auto", "--devices and --cluster exclude each other: "),
        ("--devices 2 --rank 0", "--devices and --rank exclude each other: "),
        ("--devices 2 --workers a:1,b:1", "--devices and --workers exclude each other: "),
        ("--cluster auto --rank 0", "--cluster and --rank exclude each other: "),
        ("--devices 0", "--devices must be 1 or more, not 0"),
        ("--cluster auto", "--cluster needs the number of workers, as in "),
        ("--cluster auto --workers a:1,b:1", "with --cluster, --workers is a number "),
        ("--workers 4", "--workers names the addresses of all workers and --rank says which "),
        ("--rank 1", "--workers names the addresses of all workers and --rank says which "),
        ("--workers 4 --rank 0", "--workers names '4', which is not a host:port"),
    ],
)
@pytest.mark.parametrize("verb", ["train", "train-vocoder"])
def test_flags_that_do_not_go_together_are_an_error(
    verb, words, message, myxtts, shared_corpus, tmp_path
):
    flags = ("--data", shared_corpus, "--checkpoint-dir", tmp_path / "run")
    code, out, err = myxtts(verb, *flags, *words.split())
    assert (code, out) == (2, "")
    assert err.startswith(f"error: {message}")
    assert not (tmp_path / "run").exists()
