import pytest

from myxtts.errors import UserError
from myxtts.evaluation.hard_sentences import hard_sentences
from myxtts.evaluation.metrics.intelligibility import plain_words


def words(language: str, kind: str) -> list[list[str]]:
    found = [one.text for one in hard_sentences(language) if one.kind == kind]
    return [plain_words(text, language).split() for text in found]


def test_both_languages_have_the_same_kinds():
    english, persian = ([one.kind for one in hard_sentences(code)] for code in ("en", "fa"))
    assert english == persian
    assert len(english) >= 30 and len(set(english)) == 9


@pytest.mark.parametrize("language", ["en", "fa"])
def test_every_sentence_fits_its_kind(language):
    texts = [one.text for one in hard_sentences(language)]
    assert len(set(texts)) == len(texts)
    assert all(plain_words(text, language) for text in texts)
    assert max(map(len, words(language, "very short"))) <= 2
    assert min(map(len, words(language, "very long"))) >= 45
    for said in words(language, "repeated words"):
        assert max(map(said.count, said)) >= 3
    for one in hard_sentences(language):
        if one.kind == "numbers":
            assert any(c.isdigit() for c in one.text)
            assert not any(c.isdigit() for c in plain_words(one.text, language))
        if one.kind == "punctuation":
            assert sum(not (c.isalnum() or c.isspace()) for c in one.text) >= 5
        if one.kind == "mixed scripts":
            assert any("a" <= c.lower() <= "z" for c in one.text)
            assert any(ord(c) >= 0x400 for c in one.text)


def test_a_language_without_them_names_those_that_have_some():
    with pytest.raises(UserError, match="no hard sentences in 'de', only in en, fa"):
        hard_sentences("de")
