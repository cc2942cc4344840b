import argparse
import logging
import re
import sys

import pytest

from myxtts import __version__
from myxtts.cli import terminal
from myxtts.cli.main import build_parser
from myxtts.cli.verbs import find_verbs
from myxtts.config.config import SETTINGS
from myxtts.errors import UserError
from tests.cli.conftest import ROOT


def commands(parser: argparse.ArgumentParser, words=()) -> list[tuple[str, ...]]:
    """Every command, as the words that are typed."""
    inner = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not inner:
        return [words]
    choices = inner[0].choices.items()
    found = [found for name, sub in choices for found in commands(sub, (*words, name))]
    return [words, *found] if parser.get_default("run") else found


def run(command, verbose=False) -> int:
    return terminal.run(command, argparse.Namespace(verbose=verbose))


def test_the_commands_are_these():
    assert {" ".join(words) for words in commands(build_parser())} == {
        "data check",
        "data demo",
        "data slice",
        "data transcribe",
        "download ljspeech",
        "prepare",
        "train",
        "train-vocoder",
        "finetune",
        "serve",
        "studio",
        "synthesize",
        "export",
        "evaluate",
        "voices",
        "demo",
        "demo-voices",
        "cache info",
        "cache verify",
        "cache fix",
        "cache gc",
        "weights get",
        "weights list",
        "weights show",
        "bench",
        "bench data",
        "cluster simulate",
        "profile",
        "tune",
        "monitor",
        "doctor",
        "config create",
        "config show",
        "text show",
        "text evaluate",
        "language check",
    }


@pytest.mark.parametrize("words", commands(build_parser()), ids=" ".join)
def test_every_command_explains_itself(myxtts, words):
    code, out, _ = myxtts(*words, "--help")
    assert code == 0
    assert out.startswith(f"usage: myxtts {' '.join(words)}")


def test_help_imports_nothing_heavy(program):
    script = (
        "import sys\n"
        "from myxtts.cli.main import main\n"
        "try: main(['prepare', '--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'tensorflow', 'keras', 'numpy', 'rich'} & set(sys.modules)))"
    )
    out, _ = program("-c", script).communicate(timeout=60)
    assert out.splitlines()[-1] == "[]"


def test_version(myxtts):
    assert myxtts("--version")[:2] == (0, f"myxtts {__version__}\n")


def test_a_missing_command_is_a_usage_error(myxtts):
    code, _, err = myxtts()
    assert code == 2
    assert "COMMAND" in err


def test_a_user_error_is_a_message_and_exit_code_2(capsys):
    def fail(args):
        raise UserError("the disk is full: empty it")

    assert run(fail) == 2
    assert capsys.readouterr().err == "error: the disk is full: empty it\n"


def test_an_error_of_the_system_is_a_message_too(capsys):
    assert run(lambda args: open("no/such/file").close()) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: [Errno 2] No such file or directory: 'no/such/file'")


def test_verbose_shows_where_the_system_failed():
    with pytest.raises(FileNotFoundError):
        run(lambda args: open("no/such/file").close(), verbose=True)


def test_a_bug_is_not_disguised_as_bad_input():
    with pytest.raises(ZeroDivisionError):
        run(lambda args: 1 // 0)


def test_ctrl_c_is_exit_code_130(capsys):
    def interrupt(args):
        raise KeyboardInterrupt

    assert run(interrupt) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_output_that_nobody_reads_is_no_error(program):
    process = program("-m", "myxtts.cli.main", "config", "show", "--explain")
    process.stdout.close()
    assert process.wait(timeout=60) == 141
    assert process.stderr.read() == ""
    process.stderr.close()


@pytest.mark.parametrize("verbose, shown", [(False, ""), (True, "all is well\n")])
def test_warnings_are_always_shown_and_the_rest_on_request(capsys, verbose, shown):
    def talk(args):
        logger = logging.getLogger("myxtts.data.somewhere")
        logger.info("all is %s", "well")
        logger.warning("3 files are odd")

    assert run(talk, verbose) == 0
    assert capsys.readouterr().err == shown + "warning: 3 files are odd\n"


def test_missing_tensorflow_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    terminal.show_log(verbose=False)
    with pytest.raises(UserError, match=r"pip install 'myxtts\[gpu\]'"):
        terminal.import_tensorflow()


def test_tensorflow_is_imported_silently_and_kept_from_the_garbage_collector(program):
    script = (
        "from myxtts.cli import terminal\n"
        "terminal.show_log(False)\n"
        "terminal.import_tensorflow()\n"
        "import gc, sys; print('tensorflow' in sys.modules)\n"
        "print(gc.get_freeze_count() > 100_000, len(gc.get_objects()) < 100_000)\n"
    )
    process = program("-c", script)
    assert process.communicate(timeout=120) == ("True\nTrue True\n", "")


@pytest.mark.parametrize("face", sorted(path.name for path in ROOT.glob("*.py")))
def test_faces_have_at_most_ten_lines(face):
    assert len((ROOT / face).read_text().splitlines()) <= 10


def test_a_message_with_an_endless_name_stays_short(capsys):
    def fail(args):
        raise UserError(f"unknown language {'x' * 100_000!r}. Known languages: en, fa")

    assert terminal.run(fail, argparse.Namespace(verbose=False)) == 2
    shown = capsys.readouterr().err
    assert len(shown) < 3100
    assert shown.startswith("error: unknown language 'xxx")
    assert shown.endswith("Known languages: en, fa\n")


def helps(parser: argparse.ArgumentParser, words=()):
    """Every help text, with what is typed to get at what it is about."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            yield from (((*words, one.dest), one.help) for one in action._choices_actions)
            for name, sub in action.choices.items():
                yield from helps(sub, (*words, name))
        else:
            yield (*words, *(action.option_strings or [action.dest])), action.help


def test_every_help_text_is_understood_alone():
    found = {text: " ".join(words) for words, text in helps(build_parser())}
    found |= {spec.metadata["help"]: path for path, spec in SETTINGS.items()}
    assert None not in found and "" not in found
    vague = re.compile(r"(its?|which|which one|they|their|them)\b", re.IGNORECASE)
    assert {name: text for text, name in found.items() if vague.match(text)} == {}


def test_a_line_imports_its_own_verb_alone_and_reads_it_as_with_all():
    assert [module.__name__ for module in find_verbs(["train-vocoder", "--data", "x"])] == [
        "myxtts.cli.commands.train_vocoder"
    ]
    everything = find_verbs()
    assert find_verbs(["-v", "train"]) == find_verbs(["nothing"]) == everything
    assert len(everything) > 20
    words = ["synthesize", "--text", "Hello."]
    assert vars(build_parser(words).parse_args(words)) == vars(build_parser().parse_args(words))
