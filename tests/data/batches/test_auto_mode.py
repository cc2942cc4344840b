"""What the mode auto decides, from numbers alone."""

from dataclasses import replace

import pytest

from myxtts.data.batches.auto_mode import (
    READ,
    STORE_ALL,
    STORE_NONE,
    STORE_SOME,
    Circumstances,
    decide,
)

# Two hours at 100 x real time are 72 s of work.
SEEN = Circumstances(
    hours=3.0,
    missing_hours=2.0,
    speed=100.0,
    missing_bytes=200_000_000,
    free_bytes=10_000_000_000,
    budget_bytes=None,
    epochs=10,
    missing=1000,
)
COST = "2.00 h of 3.00 h are not stored yet, features take 72.0 s (100 x real time) and 0.20 GB"


def test_with_room_for_all_the_first_epoch_stores_all():
    decision = decide(SEEN)
    assert (decision.action, decision.allowed_bytes) == (STORE_ALL, 10_000_000_000)
    assert str(decision) == (
        f"auto: {COST}; 10.00 GB are free: the first epoch computes and stores them"
    )


def test_a_complete_cache_is_read():
    decision = decide(replace(SEEN, missing_hours=0.0, missing_bytes=0, obstacle="read-only"))
    assert (decision.action, decision.allowed_bytes) == (READ, 0)
    assert str(decision) == "auto: all 3.00 h are in the cache and are read from it"


def test_a_budget_below_the_need_stores_a_part():
    decision = decide(replace(SEEN, budget_bytes=50_000_000))
    assert (decision.action, decision.allowed_bytes) == (STORE_SOME, 50_000_000)
    assert decision.why == (
        f"{COST}; 0.05 GB are in the budget: about 250 of 1,000 utterances are "
        "stored, the rest is computed in every epoch"
    )


def test_a_disk_that_is_nearly_full_stores_a_part():
    decision = decide(replace(SEEN, free_bytes=100_000_000, budget_bytes=150_000_000))
    assert (decision.action, decision.allowed_bytes) == (STORE_SOME, 100_000_000)
    assert "0.10 GB are free: about 500 of 1,000 utterances are stored" in decision.why


@pytest.mark.parametrize("budget", [200_000_000, 500_000_000])
def test_a_budget_that_suffices_stores_all_within_it(budget):
    decision = decide(replace(SEEN, budget_bytes=budget))
    assert (decision.action, decision.allowed_bytes) == (STORE_ALL, budget)
    assert "are in the budget: the first epoch computes and stores them" in decision.why


def test_the_padding_of_a_shard_is_room_for_no_utterance():
    seen = replace(SEEN, missing_bytes=800, shard_bytes=500, missing=29)
    assert "about 14 of 29 utterances" in decide(replace(seen, budget_bytes=650)).why
    assert "about 0 of 29 utterances" in decide(replace(seen, budget_bytes=499)).why


def test_a_used_up_budget_stores_nothing_more():
    decision = decide(replace(SEEN, budget_bytes=0))
    assert (decision.action, decision.allowed_bytes) == (STORE_SOME, 0)
    assert "0.00 MB are in the budget: about 0 of 1,000 utterances are stored" in decision.why


def test_one_epoch_does_not_pay():
    decision = decide(replace(SEEN, epochs=1))
    assert (decision.action, decision.allowed_bytes) == (STORE_NONE, 0)
    assert decision.why == f"{COST}; with one epoch storing them would not pay"


def test_what_cannot_be_written_is_computed_in_every_epoch():
    decision = decide(replace(SEEN, obstacle="the cache cannot be written", epochs=1))
    assert (decision.action, decision.allowed_bytes) == (STORE_NONE, 0)
    assert decision.why == f"{COST}; the cache cannot be written: computed anew in every epoch"


@pytest.mark.parametrize(
    ("speed", "size", "said"),
    [
        (50.0, 5_000_000, "features take 2.4 min (50 x real time) and 5.00 MB"),
        (7200.0, 10_000_000, "features take 1.0 s (7,200 x real time) and 0.01 GB"),
        (60.0, 9_999_999, "features take 2.0 min (60 x real time) and 10.00 MB"),
    ],
)
def test_durations_and_sizes_are_readable(speed, size, said):
    assert said in decide(replace(SEEN, speed=speed, missing_bytes=size)).why
