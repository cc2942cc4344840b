"""Which sentences somebody reads aloud for a corpus of a voice."""

from functools import cache

from myxtts.demo_corpus.sentences import GRAMMARS, corpus_sentences
from myxtts.errors import UserError
from myxtts.text.cleaners import normalise
from myxtts.text.phonemes import phonemize
from myxtts.text.prompts import OWN, choose_prompts

MOST = 100
_POOL = 300  # sentences of the built-in corpus to choose from


@cache
def reading_prompts(language: str) -> tuple[str, ...]:
    """Sentences of a language for its sounds: first those that add most. None are no language's."""
    if language not in OWN:
        return ()
    pool = list(OWN[language])
    if language in GRAMMARS:
        pool += corpus_sentences(language, _POOL)
    try:
        sounds = phonemize([normalise(one, language) for one in pool], language)
    except UserError:  # espeak is not installed: letters have to do
        sounds = [one.lower() for one in pool]
    return tuple(choose_prompts(pool, sounds, MOST))
