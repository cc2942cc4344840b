"""The corpora of a configuration, each with its cache: the one to train on, and any other."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from myxtts.config.config import DataConfig
from myxtts.data.corpus.corpus import Corpus, read_corpus
from myxtts.data.corpus.joined import join_corpora
from myxtts.data.corpus.utterance import CorpusError, Utterance, with_speed_perturbation
from myxtts.data.features.location import CacheLocation, locate_cache
from myxtts.text.tokenizer import Tokenizer


def read_corpora(data: DataConfig) -> tuple[Corpus, Corpus | None]:
    """The corpus of a configuration, and the separate one for validation if it names one."""
    read = partial(
        read_corpus,
        language=data.language,
        speaker_pattern=data.speaker_pattern,
        max_rejected=data.max_rejected,
    )
    separate = bool(data.val_dataset_path)
    folders = data.corpora
    named = (
        data.metadata_train_file,
        data.metadata_eval_file,
        data.wavs_train_dir,
        data.wavs_eval_dir,
    )
    if len(folders) > 1 and any(named):
        raise CorpusError(
            "--metadata-... and --wavs-... name files of one corpus, and there are "
            f"{len(folders)}: {', '.join(folders)}. Put such files where each corpus has them"
        )
    train = partial(
        read,
        metadata_train=data.metadata_train_file,
        metadata_eval=data.metadata_eval_file,
        wavs_train=data.wavs_train_dir,
        wavs_eval=data.wavs_eval_dir,
        val_fraction=0.0 if separate else data.val_fraction,
    )
    corpus = join_corpora([train(folder) for folder in folders])
    if not separate:
        return corpus, None
    return corpus, read(data.val_dataset_path, val_fraction=0.0)


def build_tokenizer(corpora: Sequence[Corpus], data: DataConfig) -> Tokenizer:
    """One table for all languages of all corpora: training and validation share it."""
    return Tokenizer.build(languages_of(corpora), data.text_units, data.espeak_alone)


def languages_of(corpora: Sequence[Corpus]) -> list[str]:
    return sorted({name for part in corpora for name in part.languages})


class CorpusPart(NamedTuple):
    """A corpus, where its features and tokens are stored, and the utterances that these are of.

    Those are all in it, and what is trained on at other speeds as well.
    """

    corpus: Corpus
    location: CacheLocation
    utterances: tuple[Utterance, ...]


def read_parts(data: DataConfig) -> list[CorpusPart]:
    """Read the corpora; one tokenizer serves them all, as in training."""
    corpora = [corpus for corpus in read_corpora(data) if corpus]
    tokenizer = build_tokenizer(corpora, data)
    return [
        CorpusPart(corpus, locate_cache(corpus.root, data, tokenizer), _utterances(corpus, voices))
        for corpus, voices in zip(corpora, (data.voice_augmentation, 0), strict=False)
    ]


def _utterances(corpus: Corpus, voices: int) -> tuple[Utterance, ...]:
    added = with_speed_perturbation(corpus.train, voices)[len(corpus.train) :]
    return (*corpus.utterances, *added)
