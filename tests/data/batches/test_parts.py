"""The parts of planned batches: the same ones, however many replicas share them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from myxtts.data.batches.parts import Share, SharedPlan, part_numbers, usual_parts
from myxtts.data.batches.plan import BatchOptions, BatchPlan, plan_epoch
from myxtts.errors import UserError


def make_plan(count: int = 203, batch_size: int = 16, epoch: int = 1, **options) -> BatchPlan:
    rng = np.random.default_rng(count)
    mel = rng.integers(20, 400, count).astype(np.int32)
    return plan_epoch(mel // 5, mel, BatchOptions(batch_size=batch_size, **options), epoch)


def shares(parts: int, replicas: int) -> list[Share]:
    return [Share(parts, rank, replicas) for rank in range(replicas)]


def taken(shared: SharedPlan, batch: int, share: Share) -> list[tuple[int, int]]:
    """The utterances of a batch that a replica takes, each with its part in the whole batch."""
    index = shared.plan[batch]
    parts = shared.parts_of(batch, index) + share.first
    return list(zip(index.tolist(), parts.tolist(), strict=True))


# Shares


def test_replicas_share_the_parts_in_order():
    found = [(one.first, one.own) for one in shares(8, 4)]
    assert found == [(0, 2), (2, 2), (4, 2), (6, 2)]
    assert (Share(8).first, Share(8).own) == (0, 8)


def test_parts_that_the_replicas_cannot_share_equally_are_rejected():
    with pytest.raises(UserError) as raised:
        Share(8, 0, 3)
    assert str(raised.value) == (
        "8 micro-batches cannot be shared by 3 workers: choose --micro-batches as a multiple of "
        "the workers, or another number of workers"
    )
    with pytest.raises(UserError):
        Share(1, 0, 2)


def test_exact_sums_need_a_power_of_two_of_parts():
    assert Share(8, 1, 4, is_exact=True).own == 2
    with pytest.raises(UserError, match="power of two as --micro-batches, not 6"):
        Share(6, 0, 2, is_exact=True)
    assert usual_parts(1, is_exact=True) == 8


def test_the_usual_parts_can_be_shared_by_usual_numbers_of_replicas():
    assert [usual_parts(n) for n in (1, 2, 3, 4, 5, 8, 12)] == [1, 8, 9, 8, 10, 8, 12]


# The parts of a batch


@pytest.mark.parametrize(
    ("size", "parts", "group", "expected"),
    [
        (8, 4, 1, [0, 0, 1, 1, 2, 2, 3, 3]),
        (6, 4, 1, [0, 0, 1, 2, 2, 3]),
        (5, 1, 1, [0, 0, 0, 0, 0]),
        (8, 4, 2, [0, 0, 1, 1, 2, 2, 3, 3]),
        (8, 2, 3, [0, 0, 0, 0, 0, 0, 1, 1]),  # groups of 3, 3 and 2
        (7, 4, 2, [0, 0, 1, 1, 2, 2, 3]),
        (4, 2, 0, [0, 0, 1, 1]),  # nobody wants groups
        # Fewer groups than parts: spread, so that every half of the replicas has work.
        (3, 4, 1, [0, 1, 2]),
        (2, 4, 1, [0, 2]),
        (2, 8, 1, [0, 4]),
        (4, 8, 2, [0, 0, 4, 4]),
        (1, 4, 1, [0]),
        (0, 4, 1, []),
    ],
)
def test_the_part_of_each_utterance(size, parts, group, expected):
    found = part_numbers(size, parts, group)
    assert found.tolist() == expected and found.dtype == np.int32


@given(st.integers(0, 200), st.integers(1, 16), st.integers(1, 4))
@settings(max_examples=200, deadline=None)
def test_parts_ascend_hold_whole_groups_and_are_equal_within_one_group(size, parts, group):
    found = part_numbers(size, parts, group)
    assert len(found) == size and (np.diff(found) >= 0).all()
    assert ((found >= 0) & (found < parts)).all()
    of_groups = [np.unique(found[at : at + group]) for at in range(0, size, group)]
    assert all(len(one) == 1 for one in of_groups)
    groups = np.bincount([int(one[0]) for one in of_groups], minlength=parts)
    assert groups.max() - groups.min() <= 1


# The plan of a replica


@pytest.mark.parametrize("replicas", [1, 2, 4, 8])
@pytest.mark.parametrize("skipped", [0, 3])
def test_the_replicas_together_have_the_planned_batches_in_order(replicas, skipped):
    plan = make_plan().skip(skipped)
    together = [(share, SharedPlan(plan, share)) for share in shares(8, replicas)]
    for share, shared in together:
        assert len(shared.plan) == len(plan)
        # All pad alike: what is computed of an utterance does not depend on who computes it.
        np.testing.assert_array_equal(shared.plan.frames, plan.frames)
        np.testing.assert_array_equal(shared.plan.tokens, plan.tokens)
        assert ((shared.part >= 0) & (shared.part < share.own)).all()
    for batch in range(len(plan)):
        found = [pair for share, shared in together for pair in taken(shared, batch, share)]
        numbers = part_numbers(int(plan.sizes[batch]), 8).tolist()
        assert found == list(zip(plan[batch].tolist(), numbers, strict=True))


def test_utterances_of_a_speaker_stay_in_one_part():
    speaker = np.repeat(np.arange(16), 8)
    lengths = np.random.default_rng(0).integers(30, 300, len(speaker)).astype(np.int32)
    options = BatchOptions(batch_size=16, per_speaker=4)
    plan = plan_epoch(lengths // 5, lengths, options, 0, speaker)
    shared = SharedPlan(plan, Share(4, 1, 2), group=4)
    for batch in range(len(plan)):
        index = shared.plan[batch]
        parts = shared.parts_of(batch, index)
        assert [np.count_nonzero(parts == part) for part in (0, 1)] == [4, 4]
        assert all(len(set(speaker[index[parts == part]])) == 1 for part in (0, 1))


def test_a_replica_may_have_nothing_of_a_small_batch():
    plan = BatchPlan(np.arange(5), np.array([0, 4, 5]), np.array([9, 9]), np.array([3, 3]))
    sizes = [SharedPlan(plan, share).plan.sizes.tolist() for share in shares(4, 4)]
    assert sizes == [[1, 1], [1, 0], [1, 0], [1, 0]]


def test_an_utterance_that_is_dropped_takes_its_part_with_it():
    plan = BatchPlan(np.array([7, 3, 9, 5, 1, 8]), np.array([0, 6]), np.array([9]), np.array([3]))
    shared = SharedPlan(plan, Share(6, 1, 2))
    assert shared.plan[0].tolist() == [5, 1, 8]
    assert shared.parts_of(0, np.array([5, 1, 8])).tolist() == [0, 1, 2]
    assert shared.parts_of(0, np.array([5, 8])).tolist() == [0, 2]
    assert shared.parts_of(0, np.array([1])).tolist() == [1]
    assert shared.parts_of(0, np.array([], np.int64)).tolist() == []


def test_a_plan_without_batches_can_be_shared():
    plan = make_plan(20, 8)
    shared = SharedPlan(plan.skip(len(plan)), Share(4, 1, 2))
    assert len(shared.plan) == 0 and len(shared.part) == 0


@given(
    count=st.integers(1, 120),
    batch_size=st.integers(1, 17),
    own=st.integers(1, 4),
    replicas=st.integers(1, 5),
    group=st.integers(0, 3),
    epoch=st.integers(0, 2),
    data=st.data(),
)
@settings(max_examples=150, deadline=None)
def test_no_utterance_of_an_epoch_is_lost_or_comes_twice(
    count, batch_size, own, replicas, group, epoch, data
):
    plan = make_plan(count, batch_size, epoch)
    resumed = data.draw(st.integers(0, len(plan)))
    dropped = set(data.draw(st.lists(st.integers(0, count - 1), max_size=5)))
    found = []
    for start, stop in ((0, resumed), (resumed, len(plan))):
        rest = plan.skip(start)
        for share in shares(own * replicas, replicas):
            shared = SharedPlan(rest, share, group)
            for batch in range(stop - start):
                planned = shared.plan[batch]
                index = planned[~np.isin(planned, list(dropped))]
                assert len(shared.parts_of(batch, index)) == len(index)
                found += index.tolist()
    assert sorted(found) == sorted(set(range(count)) - dropped)


def test_the_plan_that_is_shared_is_not_changed():
    plan = make_plan()
    before = replace(plan, order=plan.order.copy(), bounds=plan.bounds.copy())
    SharedPlan(plan, Share(8, 1, 2))
    np.testing.assert_array_equal(plan.order, before.order)
    np.testing.assert_array_equal(plan.bounds, before.bounds)
