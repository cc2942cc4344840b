"""The table of dialects, the ways to write down what is said in a corpus."""

import logging
from collections.abc import Callable

from myxtts.data.corpus.listing import Listing, Source
from myxtts.data.corpus.metadata_files import read_manifest, read_table
from myxtts.data.corpus.recordings import Locator
from myxtts.data.corpus.text_trees import read_text_folder, read_texts_next_to_recordings

logger = logging.getLogger(__name__)

# From the most general to the most special, so a new one goes to the end. A reader returns nothing
# for a source that is not in its dialect, and raises a CorpusError for one that is, but is wrong.
DIALECTS: dict[str, Callable[[Source], Listing | None]] = {
    "table": read_table,
    "manifest": read_manifest,
    "text folder": read_text_folder,
    "texts next to recordings": read_texts_next_to_recordings,
}


def read_metadata(path: str, locator: Locator) -> Listing | None:
    """Read a metadata file, or what is among the recordings if `path` is empty."""
    source = Source(path, locator)
    for name, read in reversed(DIALECTS.items()):
        if listing := read(source):
            logger.debug("%s: %s", path or locator.home, name)
            return listing
    return None
