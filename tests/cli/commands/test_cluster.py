import pytest

from myxtts.cli.main import main
from tests.helpers.tiny_model import TINY

CORPUS = {"count": 24, "seconds": (0.6, 1.0)}


def words(**options: object) -> list[str]:
    given = {"utterances": "1e6", "gpus": "4", **options}
    flags = [word for name, value in given.items() for word in (f"--{name}", str(value))]
    return ["cluster", "simulate", *flags]


def test_it_forecasts_a_run_from_a_corpus(shared_corpus, tmp_path, capsys):
    settings = tmp_path / "tiny.yaml"
    model = "\n".join(f"  {name}: {str(value).lower()}" for name, value in TINY.items())
    settings.write_text(f"model:\n{model}\n", encoding="utf-8")
    asked = {"data": shared_corpus, "config": settings, "batch-size": 8, "micro-batches": 4}
    before = sorted(shared_corpus.rglob("*"))
    assert main(words(**asked, **{"disk-gbps": 2, "workers-per-host": 2})) == 0
    said = capsys.readouterr().out
    assert f"measured with 24 of 24 utterances of {shared_corpus}" in said
    assert "8 utterances per batch in 4 micro-batches" in said
    assert "1 million utterances on 4 workers need" in said
    rows = [line.split("|")[1].strip() for line in said.splitlines() if line.startswith("| ")]
    assert [row for row in rows if row.isdigit()] == ["1", "2", "4"]
    assert "\nVerdict\n" in said
    assert sorted(shared_corpus.rglob("*")) == before  # the sample is stored elsewhere


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"utterances": "many"}, "argument --utterances: 'many' is not a whole number"),
        ({"utterances": "1.5"}, "argument --utterances: '1.5' is not a whole number"),
        ({"utterances": "-5"}, "argument --utterances: '-5' is not a whole number"),
        ({"gpus": "0"}, "argument --gpus: '0' is not a whole number of at least 1"),
        ({"gpus": "inf"}, "argument --gpus: 'inf' is not a whole number"),
        ({"network-gbps": "0"}, "argument --network-gbps: '0' is not a number above 0"),
        ({"step-ms": "nan"}, "argument --step-ms: 'nan' is not a number above 0"),
        ({"restart-seconds": "-1"}, "argument --restart-seconds: '-1' is not a number of at least"),
    ],
)
def test_nonsense_numbers_are_named(options, said, capsys):
    with pytest.raises(SystemExit) as ended:
        main(words(**options))
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"data": "/nowhere"}, "there is no corpus at /nowhere"),
        ({"gpus": "3", "micro-batches": "4"}, "4 micro-batches cannot be shared by 3 workers"),
    ],
)
def test_bad_input_ends_in_a_sentence(options, said, capsys):
    assert main(words(**options)) == 2
    assert said in capsys.readouterr().err
