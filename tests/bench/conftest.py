"""The corpora that the tests of data use."""

from tests.data.conftest import prepared, prepared_path, usual_corpus

__all__ = ["prepared", "prepared_path", "usual_corpus"]
