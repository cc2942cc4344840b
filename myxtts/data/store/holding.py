"""Holding a store while it is filled: alone, or together with other workers."""

import contextlib
import logging
from collections.abc import Iterator

from myxtts.data.store.integrity import drop_damage, drop_damaged, find_damage, report_damage
from myxtts.data.store.store import Store
from myxtts.monitoring.progress import Progress

logger = logging.getLogger(__name__)


@contextlib.contextmanager
def held_alone(store: Store, verify: bool = True) -> Iterator[None]:
    """Check and hold a store that nobody else writes; what was not finished is removed."""
    if verify:
        drop_damage(store)
    with store.lock():
        _remove_leftovers(store)
        try:
            yield
        finally:
            # Workers that were ended at once could not clean up after themselves.
            store.remove_leftovers()


@contextlib.contextmanager
def held_with_others(store: Store, verify: bool = True) -> Iterator[None]:
    """Hold a store together with others that add shards; nothing is deleted meanwhile.

    Damage and leftovers are dropped by whoever finds the store free: first of all, so that all see
    the same utterances missing, and after the last.
    """
    tidy_if_free(store, verify)
    try:
        with store.share():
            yield
    finally:
        tidy_if_free(store, verify=False)


def tidy_if_free(store: Store, verify: bool = True, progress: Progress | None = None) -> None:
    """Drop damage and leftovers where nobody else holds the store; who holds it has done so."""
    if not store.folder.exists():
        return
    with store.try_lock() as is_free:
        if not is_free:
            return
        if verify:
            problems = find_damage(store, progress)
            report_damage(store, problems)
            drop_damaged(store, problems)
        _remove_leftovers(store)


def _remove_leftovers(store: Store) -> None:
    removed = store.remove_leftovers()
    if removed:
        logger.info("%s: removed %d files of an interrupted run", store.folder, len(removed))
