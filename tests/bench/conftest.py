"""The corpora that the tests of data use."""

from tests.data.conftest import corpus, corpus_path, prepared, prepared_path

__all__ = ["corpus", "corpus_path", "prepared", "prepared_path"]
