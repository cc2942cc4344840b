"""The corpora of a configuration, each with its cache: the one to train on, and any other."""

from typing import NamedTuple

from myxtts.config.config import DataConfig
from myxtts.data.batches.training_data import build_tokenizer, read_corpora
from myxtts.data.corpus.corpus import Corpus, Utterance
from myxtts.data.corpus.utterance import with_other_paces
from myxtts.data.features.prepare import CacheLocation, locate_cache


class CorpusPart(NamedTuple):
    """A corpus, where its features and tokens are stored, and the utterances that these are of.

    Those are all in it, and what is trained on at other paces as well.
    """

    corpus: Corpus
    location: CacheLocation
    utterances: tuple[Utterance, ...]


def read_parts(data: DataConfig) -> list[CorpusPart]:
    """Read the corpora; one tokenizer serves them all, as in training."""
    corpora = [corpus for corpus in read_corpora(data) if corpus]
    tokenizer = build_tokenizer(corpora, data.text_units)
    return [
        CorpusPart(corpus, locate_cache(corpus.root, data, tokenizer), _utterances(corpus, voices))
        for corpus, voices in zip(corpora, (data.voice_augmentation, 0), strict=False)
    ]


def _utterances(corpus: Corpus, voices: int) -> tuple[Utterance, ...]:
    added = with_other_paces(corpus.train, voices)[len(corpus.train) :]
    return (*corpus.utterances, *added)
