"""How well Persian is read: phoneme errors, ezafes and homographs on annotated test sentences."""

import re
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from myxtts.text.languages.persian.alignment import align
from myxtts.text.languages.persian.annotations import Sentence
from myxtts.text.languages.persian.inventory import from_espeak, split_phonemes
from myxtts.text.languages.persian.reading import ReadText


class Hypothesis(NamedTuple):
    """What a system says to a sentence: of each word its sounds and ezafe, and all phonemes."""

    words: list[str | None]
    ezafes: list[bool]
    phonemes: str


class Score(NamedTuple):
    """The figures of one system; rates from 0 to 1, None where a set has nothing to count."""

    phoneme_errors: float
    precision: float | None
    recall: float | None
    f1: float | None
    homographs: float | None
    sentences_per_second: float
    num_sentences: int


class System(NamedTuple):
    """Something that says normalised texts, and how to take what it says apart."""

    name: str
    say: Callable[[Sequence[str]], list[Any]]
    interpret: Callable[[Sentence, Any], Hypothesis]


def judge(sentences: Sequence[Sentence], texts: Sequence[str], system: System) -> Score:
    """Let a system say normalised texts, and compare with what people wrote.

    The texts are said twice: the second time tells the speed, as in a corpus most words come again.
    """
    said = system.say(texts)
    start = time.process_time()
    system.say(texts)
    seconds = time.process_time() - start
    hypotheses = [system.interpret(s, one) for s, one in zip(sentences, said, strict=True)]
    errors = [_phoneme_errors(s, h) for s, h in zip(sentences, hypotheses, strict=True)]
    return Score(
        sum(wrong for wrong, _ in errors) / max(1, sum(count for _, count in errors)),
        *_ezafe_scores(sentences, hypotheses),
        _homograph_accuracy(sentences, hypotheses),
        len(texts) / seconds,
        len(texts),
    )


def from_reader(_: Sentence, text: ReadText) -> Hypothesis:
    """Take the words of a text that the front end has read."""
    words: list[str | None] = [item.bare for item in text.words]
    ezafes = [item.has_ezafe for item in text.words]
    return Hypothesis(words, ezafes, text.phonemes)


def from_espeak_ipa(sentence: Sentence, ipa: str) -> Hypothesis:
    """Assign what espeak says to the words of a sentence; an ezafe is an e that nothing writes."""
    spoken = from_espeak(re.sub(r"[^\w\s\u0361ˈˌː]", " ", ipa)).split()
    words: list[str | None] = [None] * len(sentence.words)
    ezafes = [False] * len(sentence.words)
    for rows, columns in align([word.text for word in sentence.words], spoken):
        if rows.start == rows.stop or columns.start == columns.stop:
            continue
        at, sounds = rows.stop - 1, "".join(spoken[columns])
        ezafes[at] = _ends_in_ezafe(sentence.words[at].text, sounds)
        words[at] = sounds if rows.start == at else None
    return Hypothesis(words, ezafes, " ".join(spoken))


def _ends_in_ezafe(written: str, spoken: str) -> bool:
    if written.endswith("ه"):
        return spoken.endswith("eje")
    return spoken.endswith("e")


def _phoneme_errors(sentence: Sentence, hypothesis: Hypothesis) -> tuple[int, int]:
    """Count the edits between two sequences of phonemes, and the phonemes of the first."""
    wanted = _comparable(" ".join(sentence.phonemes))
    return edit_distance(wanted, _comparable(hypothesis.phonemes)), len(wanted)


def _comparable(phonemes: str) -> list[str]:
    """Only sounds: annotators write a glottal stop before every vowel that begins a word."""
    words = re.sub(r"[^\w\s\u0361]|[ˈˌː]", "", phonemes).split()
    return [sound for word in words for sound in split_phonemes(word.removeprefix("ʔ"))]


def edit_distance(first: Sequence[str], second: Sequence[str]) -> int:
    """The fewest insertions, deletions and substitutions that make one sequence the other."""
    row = list(range(len(second) + 1))
    for count, one in enumerate(first, 1):
        diagonal, row[0] = row[0], count
        for place, other in enumerate(second, 1):
            change = diagonal + (one != other)
            diagonal = row[place]
            row[place] = min(change, row[place] + 1, row[place - 1] + 1)
    return row[-1]


def _ezafe_scores(
    sentences: Sequence[Sentence], hypotheses: Sequence[Hypothesis]
) -> tuple[float | None, float | None, float | None]:
    hits = found = wanted = 0
    for sentence, hypothesis in zip(sentences, hypotheses, strict=True):
        for mark, said in zip(sentence.ezafes, hypothesis.ezafes, strict=True):
            if mark is not None:
                hits, found, wanted = hits + (mark and said), found + said, wanted + mark
    if not hits:
        return (None, None, None) if not wanted else (0.0, 0.0, 0.0)
    precision, recall = hits / found, hits / wanted
    return precision, recall, 2 * precision * recall / (precision + recall)


def _homograph_accuracy(
    sentences: Sequence[Sentence], hypotheses: Sequence[Hypothesis]
) -> float | None:
    right = total = 0
    for sentence, hypothesis in zip(sentences, hypotheses, strict=True):
        for place, is_homograph in enumerate(sentence.homographs):
            wanted = sentence.spoken[place]
            if is_homograph and wanted:
                total += 1
                right += _is_same_word(wanted, hypothesis.words[place], sentence, place)
    return right / total if total else None


def _is_same_word(wanted: str, said: str | None, sentence: Sentence, place: int) -> bool:
    if said is None:
        return False
    with_ezafe = {wanted, wanted + "e", wanted + "je"} if sentence.ezafes[place] else {wanted}
    return _loose(said) in {_loose(form) for form in with_ezafe}


def _loose(word: str) -> str:
    """A word without glottal stops and doubled consonants, on which annotators differ."""
    return re.sub(r"(t͡ʃ|d͡ʒ|.)\1", r"\1", word.replace("ʔ", ""))
