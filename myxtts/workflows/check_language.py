"""What a language has and lacks, in itself and for the texts of a corpus."""

from collections import Counter

from myxtts.data.corpus.corpus import read_corpus
from myxtts.inference.sentences import cut_sentences
from myxtts.text.checklist import Item, checklist
from myxtts.text.guess import guess_language
from myxtts.text.languages import get_language
from myxtts.text.tokenizer import Tokenizer

_MOST_TEXTS = 2000
_SHOWN = 8


def check_language(code: str, corpus: str | None = None) -> list[Item]:
    """Check a language, and the texts of a corpus read in it."""
    items = [*checklist(code), _sentence_ends(code)]
    return [*items, *_check_texts(code, corpus)] if corpus else items


def _sentence_ends(code: str) -> Item:
    greeting = get_language(code).greeting
    pieces = [piece for piece in cut_sentences(f"{greeting} {greeting}", code) if piece.strip()]
    return Item("sentence ends", len(pieces) > 1, f"two greetings are {len(pieces)} pieces")


def _check_texts(code: str, root: str) -> list[Item]:
    texts = [utterance.text for utterance in read_corpus(root).utterances][:_MOST_TEXTS]
    guess = guess_language(texts)
    is_same = guess is None or guess.code == code
    how = f"{guess.code}: {guess.evidence}" if guess else "nothing speaks clearly for a language"
    tokenizer = Tokenizer.build([code])
    unknown: Counter[str] = sum((tokenizer.unknown(text, code) for text in texts), Counter())
    silent = sum(not len(ids) for ids in tokenizer.encode_batch(texts, code))
    signs = ", ".join(f"{sign!r} {count}" for sign, count in unknown.most_common(_SHOWN))
    lost = f"without a sound: {signs}" if signs else "all known"
    return [
        Item("corpus: language", is_same, how),
        Item("corpus: characters", not unknown, lost),
        Item("corpus: texts", not silent, f"{silent} of {len(texts)} have nothing to say"),
    ]
