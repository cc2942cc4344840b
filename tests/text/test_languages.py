"""The table of languages."""

import importlib
import pkgutil

import pytest

from myxtts.errors import UserError
from myxtts.text import languages
from myxtts.text.cleaners import normalise
from myxtts.text.language import Language
from myxtts.text.languages import LANGUAGES, get_language, greeting
from myxtts.text.tokenizer import Tokenizer

CODES = "en fa es fr de it pt pl tr ru nl cs ar zh-cn hu ko ja hi".split()


def test_every_language_is_there_with_an_alphabet_and_a_voice():
    assert list(LANGUAGES) == CODES
    for code in CODES:
        language = get_language(code)
        assert language.code == code
        assert language.alphabet and language.espeak_voice and language.name
        assert language.alphabet == language.alphabet.lower()


def test_every_file_of_a_language_has_its_row():
    modules = pkgutil.walk_packages(languages.__path__, languages.__name__ + ".")
    contents = [vars(importlib.import_module(module.name)).values() for module in modules]
    found = [one for values in contents for one in values if isinstance(one, Language)]
    assert {one.code for one in found} == set(LANGUAGES)


def test_an_unknown_language_is_an_error_that_names_the_nearest():
    with pytest.raises(UserError, match="Did you mean 'zh-cn'.*Known languages: en, fa"):
        get_language("zh_cn")
    with pytest.raises(UserError, match="unknown language 'qqq'"):
        normalise("hello", "qqq")


def test_turkish_knows_two_letters_i():
    assert normalise("IŞIK İstanbul", "tr") == "ışık istanbul"
    assert normalise("İ", "en") == "i"


def test_punctuation_of_every_script_becomes_one_set():
    assert normalise("你好，世界！", "zh-cn") == "你好, 世界!"
    assert normalise("はい。いいえ、", "ja") == "はい. いいえ,"
    assert normalise("नमस्ते।", "hi") == "नमस्ते."
    assert normalise("« Bonjour » ?", "fr") == '"bonjour"?'


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_language_has_a_greeting_that_its_letters_can_write(code):
    tokenizer = Tokenizer.build([code])
    assert not tokenizer.unknown(greeting(code), code)
    assert len(tokenizer.encode(greeting(code), code)) > 5
