"""Which shards of a corpus are made by one of several workers that do not talk to each other."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from myxtts.data.corpus.utterance import Utterance
from myxtts.data.features.keys import keys_of
from myxtts.data.store.shard_writer import hash64
from myxtts.data.store.view import StoreView
from myxtts.errors import UserError


@dataclass(frozen=True, slots=True)
class Share:
    """The shards of worker `number`, counted from 1, of `count` workers.

    A shard belongs to the place in the corpus where it begins. That stays the same whenever a
    worker looks at the store and whatever the others have made meanwhile, and a corpus that is not
    prepared yet is shared out evenly, which the shards' names, being hashes, would not do.
    """

    number: int = 1
    count: int = 1

    @classmethod
    def parse(cls, text: str) -> "Share":
        """Read "3/8"."""
        found = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text.strip())
        number, count = map(int, found.groups()) if found else (0, 0)
        if not 1 <= number <= count:
            raise UserError(
                f"--worker {text}: write I/N, where N is how many workers there are and I is "
                "which of them this is, from 1 to N; for example 3/8"
            )
        return cls(number, count)

    def owns(self, first: int, size: int) -> bool:
        """Whether a shard is ours that begins at a place in the corpus; `size` is a whole shard's.

        Every N shards in a row belong to N workers, in turn, beginning with another worker each
        time: a corpus of which every second utterance is missing is shared out too.
        """
        turn, place = divmod(first // size, self.count)
        return (place + hash64(str(turn))) % self.count == self.number - 1


def first_places(
    utterances: Sequence[Utterance], missing: np.ndarray, view: StoreView, size: int
) -> np.ndarray:
    """For each utterance, the place in the corpus where its shard begins.

    The shard of a missing utterance is the one that it will be in: those are cut in the order of
    the corpus.
    """
    places = np.arange(len(utterances))
    todo = np.flatnonzero(missing)
    places[todo] = np.repeat(todo[::size], size)[: len(todo)]
    stored = np.flatnonzero(~missing)
    if len(stored):
        shards = view.shard[view.find(keys_of(utterances)[stored])]
        first = np.full(len(view.shards), len(utterances))
        np.minimum.at(first, shards, stored)
        places[stored] = first[shards]
    return places
