"""Whether the texts of a corpus are in the language that they are to be read in."""

import logging
from collections import defaultdict
from collections.abc import Sequence

from myxtts.data.corpus.corpus import Corpus
from myxtts.data.corpus.utterance import CorpusError
from myxtts.text.foreign import describe_foreign
from myxtts.text.guess import Guess, guess_language
from myxtts.text.languages import get_language
from myxtts.text.scripts import describe_script
from myxtts.text.tokenizer import Tokenizer

logger = logging.getLogger(__name__)

_GUESSED_FROM, _ENCODED = 2000, 200  # texts that stand for all
_TOO_SILENT = 0.5


def check_languages(corpora: Sequence[Corpus], tokenizer: Tokenizer) -> None:
    """Reject texts that their language cannot say; warn of those that seem to be in another."""
    for corpus in corpora:
        for language, texts in _by_language(corpus).items():
            _check_language(corpus, language, texts, tokenizer)


def _check_language(corpus: Corpus, language: str, texts: list[str], tokenizer: Tokenizer) -> None:
    guess = guess_language(_spread(texts, _GUESSED_FROM))
    if not guess or guess.code != language:
        _check_sayable(corpus, language, _spread(texts, _ENCODED), guess, tokenizer)
    if guess and guess.code != language:
        logger.warning(
            "%s: the texts look like %s, as %s, and are read as %s. If they are not, give "
            "--language %s, or correct the languages in the metadata",
            corpus.root,
            _name(guess.code),
            guess.evidence,
            _name(language),
            guess.code,
        )
    for finding in describe_script(texts, language):
        logger.warning("%s: %s", corpus.root, finding)
    foreign = [word for text in texts for word in tokenizer.foreign_words(text, language)]
    if foreign:
        logger.warning("%s: the texts have %s", corpus.root, describe_foreign(foreign, language))


def _check_sayable(
    corpus: Corpus, language: str, texts: list[str], guess: Guess | None, tokenizer: Tokenizer
) -> None:
    """Reject texts most of which have no sound, if another language explains it, or all."""
    silent = sum(not len(ids) for ids in tokenizer.encode_batch(texts, language))
    if silent < len(texts) and not (guess and silent > _TOO_SILENT * len(texts)):
        return
    advice = "Give the language of the texts with --language, or correct the metadata"
    if guess:
        advice = f"They look like {_name(guess.code)}, as {guess.evidence}: give --language "
        advice += guess.code
    raise CorpusError(
        f"{corpus.root}: {silent:,} of {len(texts):,} texts that were looked at hold nothing that "
        f"can be spoken in {_name(language)}, such as {texts[0][:60]!r}. {advice}"
    )


def _by_language(corpus: Corpus) -> dict[str, list[str]]:
    texts = defaultdict(list)
    for utterance in corpus.utterances:
        texts[utterance.language].append(utterance.text)
    return texts


def _spread(texts: list[str], most: int) -> list[str]:
    """At most so many of the texts, from all parts of the corpus."""
    return texts[:: -(-len(texts) // most)]


def _name(code: str) -> str:
    return f"{get_language(code).name} ({code})"
