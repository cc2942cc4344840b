"""The corpora of a configuration, each with its cache: the one to train on, and any other."""

from typing import NamedTuple

from myxtts.config.config import DataConfig
from myxtts.data.corpus import Corpus, Utterance
from myxtts.data.prepare import CacheLocation, locate_cache
from myxtts.data.training_data import read_corpora
from myxtts.text.tokenizer import Tokenizer


class CorpusPart(NamedTuple):
    """A corpus and where its features and tokens are stored."""

    corpus: Corpus
    location: CacheLocation

    @property
    def utterances(self) -> tuple[Utterance, ...]:
        return self.corpus.utterances


def read_parts(data: DataConfig) -> list[CorpusPart]:
    """Read the corpora; one tokenizer serves them all, as in training."""
    corpora = [corpus for corpus in read_corpora(data) if corpus]
    languages = sorted({language for corpus in corpora for language in corpus.languages})
    tokenizer = Tokenizer.build(languages, data.text_units)
    return [CorpusPart(corpus, locate_cache(corpus.root, data, tokenizer)) for corpus in corpora]
