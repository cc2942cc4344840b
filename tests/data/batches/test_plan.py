"""The batch plan: complete, repeatable, thrifty with padding, and of few shapes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from myxtts.data.batches.plan import (
    BatchOptions,
    BatchPlan,
    Layout,
    describe_layout,
    plan_epoch,
    plan_in_order,
    round_up,
    text_padding,
)
from myxtts.errors import UserError

MANY = 13_100


def speech_lengths(count: int = MANY, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Text and mel lengths as a read-aloud corpus has them: 1.1 to 10.1 s, mostly long ones."""
    rng = np.random.default_rng(seed)
    seconds = 1.1 + 9.0 * rng.beta(2.6, 1.7, count)
    mel = np.round(86.13 * seconds).astype(np.int32)
    text = np.round(mel * rng.uniform(0.15, 0.22, count)).astype(np.int32)
    return text, mel


def planned(plan: BatchPlan) -> np.ndarray:
    return np.concatenate([plan[number] for number in range(len(plan))])


def pairs(plan: BatchPlan) -> set[tuple[int, int]]:
    """Who shares a batch with whom."""
    found = set()
    for number in range(len(plan)):
        members = np.sort(plan[number]).tolist()
        found.update((a, b) for at, a in enumerate(members) for b in members[at + 1 :])
    return found


def assert_same(one: BatchPlan, other: BatchPlan) -> None:
    assert len(one) == len(other)
    for number in range(len(one)):
        np.testing.assert_array_equal(one[number], other[number])
    np.testing.assert_array_equal(one.frames, other.frames)
    np.testing.assert_array_equal(one.tokens, other.tokens)


# Every utterance, repeatably


def test_every_utterance_comes_exactly_once_in_every_epoch():
    text, mel = speech_lengths()
    for epoch in (0, 1, 7):
        plan = plan_epoch(text, mel, BatchOptions(batch_size=48), epoch)
        np.testing.assert_array_equal(np.sort(planned(plan)), np.arange(MANY))


def test_the_same_seed_and_epoch_give_the_same_plan_and_others_another():
    text, mel = speech_lengths(1000)
    options = BatchOptions(batch_size=16, seed=3)
    plan = plan_epoch(text, mel, options, epoch=2)
    assert_same(plan, plan_epoch(text, mel, options, epoch=2))
    assert not np.array_equal(plan.order, plan_epoch(text, mel, options, epoch=3).order)
    other_seed = BatchOptions(batch_size=16, seed=4)
    assert not np.array_equal(plan.order, plan_epoch(text, mel, other_seed, epoch=2).order)


def test_all_batches_have_the_batch_size_but_the_last():
    text, mel = speech_lengths(1003)
    for epoch in range(5):
        sizes = plan_epoch(text, mel, BatchOptions(batch_size=16, pool_batches=7), epoch).sizes
        np.testing.assert_array_equal(sizes, [16] * 62 + [11])


def test_no_batch_is_smaller_where_the_utterances_divide_evenly():
    text, mel = speech_lengths(960)
    plan = plan_epoch(text, mel, BatchOptions(batch_size=16), epoch=1)
    np.testing.assert_array_equal(plan.sizes, [16] * 60)


@pytest.mark.parametrize("count", [0, 1, 5, 16])
def test_small_corpora_become_one_batch_or_none(count):
    text, mel = speech_lengths(count)
    for plan in (
        plan_epoch(text, mel, BatchOptions(batch_size=16)),
        plan_epoch(text, mel, BatchOptions(batch_size=16, max_frames=10**6)),
        plan_in_order(text, mel, BatchOptions(batch_size=16)),
    ):
        assert plan.sizes.tolist() == ([count] if count else [])
        assert len(plan) == (1 if count else 0)


def test_a_million_utterances_can_be_planned():
    text, mel = speech_lengths(1_000_000)
    plan = plan_epoch(text, mel, BatchOptions(batch_size=48), epoch=1)
    assert len(plan) == 20_834 and plan.sizes[-1] == 1_000_000 - 48 * 20_833
    np.testing.assert_array_equal(np.bincount(plan.order, minlength=len(mel)), 1)
    assert plan.padding_waste(mel) < 0.05


# Padding


def test_padding_waste_by_hand():
    mel = np.array([10, 32, 33, 64], np.int32)
    plan = plan_in_order(np.array([3, 8, 9, 2]), mel, BatchOptions(batch_size=2))
    assert plan.frames.tolist() == [32, 64]
    assert plan.tokens.tolist() == [8, 16]
    assert [plan[0].tolist(), plan[1].tolist()] == [[0, 1], [2, 3]]
    assert plan.padding_waste(mel) == pytest.approx(1 - 139 / 192)
    assert plan.skip(1).padding_waste(mel) == pytest.approx(1 - 97 / 128)


def test_little_padding_is_wasted_on_lengths_of_speech():
    text, mel = speech_lengths()
    plan = plan_epoch(text, mel, BatchOptions(batch_size=48), epoch=1)
    exact = plan_epoch(text, mel, BatchOptions(batch_size=48, multiple=1), epoch=1)
    shuffled = np.random.default_rng(0).permutation(mel)[: MANY // 48 * 48].reshape(-1, 48)
    unbucketed = 1 - shuffled.sum() / (48 * shuffled.max(axis=1).sum())
    assert plan.padding_waste(mel) < 0.05
    assert exact.padding_waste(mel) < 0.02
    assert unbucketed > 0.25


def test_few_who_share_a_batch_meet_again_in_the_next_epoch():
    text, mel = speech_lengths()
    options = BatchOptions(batch_size=48)
    before, after = (pairs(plan_epoch(text, mel, options, epoch)) for epoch in (1, 2))
    assert len(before & after) / len(before) < 0.2
    one_pool = BatchOptions(batch_size=48, pool_batches=10**6)
    before, after = (pairs(plan_epoch(text, mel, one_pool, epoch)) for epoch in (1, 2))
    assert len(before & after) / len(before) > 0.5, "sorting everything repeats its batches"


def test_padded_lengths_are_the_least_multiples_that_hold_the_batch():
    text, mel = speech_lengths(2000)
    plan = plan_epoch(text, mel, BatchOptions(batch_size=16, multiple=32), epoch=1)
    longest = np.array([mel[plan[number]].max() for number in range(len(plan))])
    np.testing.assert_array_equal(plan.frames, -(-longest // 32) * 32)
    for number in range(len(plan)):
        assert text[plan[number]].max() <= plan.tokens[number]


def test_text_padding_grows_with_the_frames_and_holds_any_shorter_utterance():
    text, mel = np.array([40, 3, 17]), np.array([20, 60, 100])
    padded = text_padding(text, mel, np.array([32, 64, 96, 128]), multiple=32)
    assert padded.tolist() == [40, 40, 40, 40]
    text = np.array([3, 17, 41])
    padded = text_padding(text, mel, np.array([32, 64, 96, 128]), multiple=32)
    assert padded.tolist() == [8, 24, 24, 48]


def test_round_up():
    assert round_up(np.array([0, 1, 31, 32, 33]), 32).tolist() == [0, 32, 32, 32, 64]


# Shapes


def test_the_shapes_are_few_and_are_those_of_the_batches():
    text, mel = speech_lengths()
    shapes = set()
    for epoch in range(3):
        plan = plan_epoch(text, mel, BatchOptions(batch_size=48), epoch)
        rows = zip(plan.sizes.tolist(), plan.tokens.tolist(), plan.frames.tolist(), strict=True)
        assert plan.shapes() == set(rows)
        shapes |= plan.shapes()
    assert {size for size, _, _ in shapes} == {48, MANY % 48}
    full = {(tokens, frames) for size, tokens, frames in shapes if size == 48}
    assert len(full) == len({frames for _, frames in full}) <= -(-int(mel.max()) // 32)


def test_one_text_length_belongs_to_each_mel_length_in_all_epochs():
    text, mel = speech_lengths(3000)
    tokens_of: dict[int, int] = {}
    for epoch in range(4):
        plan = plan_epoch(text, mel, BatchOptions(batch_size=16), epoch)
        for frames, tokens in zip(plan.frames.tolist(), plan.tokens.tolist(), strict=True):
            assert tokens_of.setdefault(frames, tokens) == tokens


def test_the_batch_with_most_frames_comes_first_in_epoch_0():
    text, mel = speech_lengths()
    for options in (
        BatchOptions(batch_size=48),
        BatchOptions(batch_size=48, max_frames=20_000),
        BatchOptions(batch_size=13_000),
    ):
        cost = (lambda plan: plan.frames * plan.sizes)(plan_epoch(text, mel, options, 0))
        assert cost[0] == cost.max()
    firsts = {
        int(plan_epoch(text, mel, BatchOptions(batch_size=48), epoch).frames[0])
        for epoch in range(1, 9)
    }
    assert len(firsts) > 1, "later epochs begin anywhere"


# The budget of frames


def rows(plan: BatchPlan) -> list[tuple[int, int, int]]:
    return list(zip(plan.sizes.tolist(), plan.tokens.tolist(), plan.frames.tolist(), strict=True))


@pytest.mark.parametrize("max_frames", [0, 8000])
@pytest.mark.parametrize("epoch", [0, 3])
def test_batches_of_one_shape_follow_each_other(epoch, max_frames):
    text, mel = speech_lengths()
    options = BatchOptions(batch_size=32, max_frames=max_frames)
    single = plan_epoch(text, mel, options, epoch)
    plan = plan_epoch(text, mel, replace(options, alike=4), epoch)
    # The same batches in another order: the longest still first, what is left over still last.
    batches = [
        {tuple(one[number].tolist()) for number in range(len(one))} for one in (single, plan)
    ]
    assert batches[0] == batches[1]
    if epoch == 0:
        np.testing.assert_array_equal(plan[0], single[0])
    if not max_frames:
        np.testing.assert_array_equal(plan[len(plan) - 1], single[len(single) - 1])
    shapes, runs = rows(plan), []
    for number, shape in enumerate(shapes):
        if number and shape == shapes[number - 1]:
            runs[-1] += 1
        else:
            runs.append(1)
    # All but one run of each shape is full; two runs of a shape may stand next to each other.
    short = sum(run % 4 > 0 for run in runs)
    assert short <= len(plan.shapes()) + 1
    assert np.mean(runs) > 2.5
    np.testing.assert_array_equal(
        planned(plan), planned(plan_epoch(text, mel, replace(options, alike=4), epoch))
    )


def test_a_batch_stays_within_the_budget_of_frames():
    text, mel = speech_lengths()
    plan = plan_epoch(text, mel, BatchOptions(batch_size=64, max_frames=16_000), epoch=1)
    np.testing.assert_array_equal(np.sort(planned(plan)), np.arange(MANY))
    assert (plan.sizes * plan.frames <= 16_000).all()
    assert plan.sizes.max() <= 64
    # A batch could not have taken another of its length: the budget is used.
    assert (plan.sizes * plan.frames).mean() > 0.85 * 16_000


def test_an_utterance_beyond_the_budget_stands_alone():
    mel = np.array([10, 20, 500, 12, 600], np.int32)
    options = BatchOptions(batch_size=8, max_frames=100, multiple=1)
    plan = plan_epoch(np.full(5, 3), mel, options, epoch=1)
    batches = sorted(sorted(plan[number].tolist()) for number in range(len(plan)))
    assert batches == [[0, 1, 3], [2], [4]]


# Going on in the middle


def test_skipping_leaves_the_tail():
    text, mel = speech_lengths(500)
    plan = plan_epoch(text, mel, BatchOptions(batch_size=16), epoch=1)
    for skipped in (0, 1, 17, len(plan) - 1, len(plan)):
        rest = plan.skip(skipped)
        assert len(rest) == len(plan) - skipped
        for number in range(len(rest)):
            np.testing.assert_array_equal(rest[number], plan[skipped + number])
            assert rest.frames[number] == plan.frames[skipped + number]
            assert rest.tokens[number] == plan.tokens[skipped + number]
    assert_same(plan.skip(3).skip(4), plan.skip(7))


@pytest.mark.parametrize("batches", [-1, 33])
def test_more_than_there_is_cannot_be_skipped(batches):
    text, mel = speech_lengths(512)
    plan = plan_epoch(text, mel, BatchOptions(batch_size=16))
    with pytest.raises(UserError, match=f"after batch {batches} of an epoch of 32"):
        plan.skip(batches)


# Validation, and the balance of speakers


def test_validation_batches_are_sorted_and_never_change():
    text, mel = speech_lengths(100)
    plan = plan_in_order(text, mel, BatchOptions(batch_size=16, seed=1))
    assert_same(plan, plan_in_order(text, mel, BatchOptions(batch_size=16, seed=2)))
    np.testing.assert_array_equal(np.sort(planned(plan)), np.arange(100))
    assert (np.diff(mel[planned(plan)]) >= 0).all()
    assert plan.sizes.tolist() == [16] * 6 + [4]


def test_balanced_speakers_have_equal_shares():
    text, mel = speech_lengths(1000)
    speaker = np.repeat([0, 1, 2], [900, 90, 10])
    options = BatchOptions(batch_size=16, balance_speakers=True)
    for epoch in range(3):
        plan = plan_epoch(text, mel, options, epoch, speaker)
        order = planned(plan)
        shares = np.bincount(speaker[order])
        assert shares.sum() == 1000 and shares.max() - shares.min() <= 1
        assert len(set(order[speaker[order] == 0])) == shares[0], "who need not, does not repeat"
        times = np.bincount(order, minlength=1000)[990:]
        assert times.max() - times.min() <= 1, "the ten of the third speaker come equally often"


def test_unbalanced_speakers_come_as_often_as_they_speak():
    text, mel = speech_lengths(100)
    speaker = np.repeat([0, 1], [90, 10])
    plan = plan_epoch(text, mel, BatchOptions(batch_size=16), 0, speaker)
    assert np.bincount(speaker[planned(plan)]).tolist() == [90, 10]


# Properties


@st.composite
def corpora(draw):
    mel = draw(st.lists(st.integers(1, 900), min_size=1, max_size=120))
    text = draw(st.lists(st.integers(1, 200), min_size=len(mel), max_size=len(mel)))
    return np.array(text, np.int32), np.array(mel, np.int32)


@settings(max_examples=150, deadline=None)
@given(
    corpus=corpora(),
    batch_size=st.integers(1, 40),
    max_frames=st.sampled_from([0, 1, 300, 2000]),
    pool_batches=st.integers(1, 6),
    multiple=st.sampled_from([1, 8, 32]),
    epoch=st.integers(0, 3),
)
def test_any_plan_is_complete_and_fits(
    corpus, batch_size, max_frames, pool_batches, multiple, epoch
):
    text, mel = corpus
    options = BatchOptions(batch_size, max_frames, pool_batches, multiple)
    plan = plan_epoch(text, mel, options, epoch)
    np.testing.assert_array_equal(np.sort(planned(plan)), np.arange(len(mel)))
    for number in range(len(plan)):
        members, frames = plan[number], plan.frames[number]
        assert 1 <= len(members) <= batch_size
        assert mel[members].max() <= frames < mel[members].max() + multiple
        assert text[members].max() <= plan.tokens[number]
        assert frames % multiple == 0 and plan.tokens[number] % 8 == 0
        assert not max_frames or len(members) == 1 or len(members) * frames <= max_frames
    if not max_frames:
        assert (plan.sizes[:-1] == batch_size).all()
        assert len(plan.shapes()) <= len(set(plan.frames.tolist())) + 1
    if epoch == 0:
        cost = plan.frames.astype(np.int64) * plan.sizes
        assert cost[0] == cost.max()
    assert_same(plan, plan_epoch(text, mel, options, epoch))


def test_several_utterances_of_a_speaker_share_a_batch():
    random = np.random.default_rng(3)
    speaker = np.repeat(np.arange(20), random.integers(3, 60, 20)).astype(np.int32)
    lengths = random.integers(20, 400, len(speaker))
    options = BatchOptions(batch_size=16, per_speaker=4, pool_batches=3)
    plan = plan_epoch(lengths // 4, lengths, options, 1, speaker)
    assert sorted(plan.order.tolist()) == list(range(len(speaker)))
    assert set(plan.sizes[:-1].tolist()) == {16}
    is_shared = [
        np.count_nonzero(speaker[plan[i]] == speaker[one]) >= 2
        for i in range(len(plan))
        for one in plan[i].tolist()
    ]
    assert np.mean(is_shared) > 0.95  # all but what is left of a speaker
    alone = plan_epoch(lengths // 4, lengths, BatchOptions(batch_size=16, pool_batches=3), 1)
    assert plan.padding_waste(lengths) < alone.padding_waste(lengths) + 0.1


def test_groups_of_a_speaker_change_from_epoch_to_epoch():
    speaker = np.repeat(np.arange(4), 64).astype(np.int32)
    lengths = np.random.default_rng(0).integers(20, 400, len(speaker))
    options = BatchOptions(batch_size=8, per_speaker=4)
    pairs = []
    for epoch in (0, 1):
        plan = plan_epoch(lengths, lengths, options, epoch, speaker)
        batches = [plan[i].tolist() for i in range(len(plan))]
        pairs.append({(a, b) for batch in batches for a in batch for b in batch if a < b})
    assert len(pairs[0] & pairs[1]) < 0.5 * len(pairs[0])


# Groups of shards


def layout(utterances: int, shards: int, limit: int) -> Layout:
    """Shards of a hundred bytes; utterances go round them."""
    return Layout(np.arange(utterances) % shards, np.full(shards, 100), limit)


def test_batches_are_drawn_from_one_group_of_shards_each():
    text, mel = speech_lengths(600)
    where = layout(len(mel), 12, 500)
    for epoch in range(3):
        plan = plan_epoch(text, mel, BatchOptions(batch_size=16), epoch, layout=where)
        assert sorted(plan.order.tolist()) == list(range(len(mel)))
        group = plan.groups[plan_rows(plan)]
        drawn = [set(where.shard[plan.order[group == number]].tolist()) for number in range(3)]
        assert sorted(len(shards) for shards in drawn) == [2, 5, 5]
        assert set.union(*drawn) == set(range(12))
        assert np.all(np.diff(plan.groups) >= 0)


def plan_rows(plan) -> np.ndarray:
    """The batch of each planned utterance."""
    return np.repeat(np.arange(len(plan)), plan.sizes)


def test_a_global_shuffle_touches_nearly_all_shards_in_the_first_batches():
    text, mel = speech_lengths()
    plan = plan_epoch(text, mel, BatchOptions(batch_size=32), 1)
    touched = np.unique(plan.order[: plan.bounds[5]] // 256)
    assert len(touched) / (MANY / 256) > 0.95


def test_groups_follow_from_the_seed_and_the_epoch():
    text, mel = speech_lengths(600)
    where, options = layout(len(mel), 12, 500), BatchOptions(batch_size=16)
    plan = plan_epoch(text, mel, options, 2, layout=where)
    assert_same(plan, plan_epoch(text, mel, options, 2, layout=where))
    other = plan_epoch(text, mel, options, 3, layout=where)
    assert not np.array_equal(plan.order, other.order)
    first, then = (set(where.shard[p.order[: p.bounds[5]]].tolist()) for p in (plan, other))
    assert first != then


def test_the_longest_utterance_is_in_the_first_group_of_the_first_epoch():
    text, mel = speech_lengths(600)
    plan = plan_epoch(text, mel, BatchOptions(batch_size=16), 0, layout=layout(len(mel), 9, 300))
    where = plan_rows(plan)[plan.order == np.argmax(mel)]
    assert plan.groups[where].tolist() == [0]


def test_groups_stay_with_their_batches():
    text, mel = speech_lengths(600)
    plan = plan_epoch(text, mel, BatchOptions(batch_size=16), 1, layout=layout(len(mel), 9, 300))
    np.testing.assert_array_equal(plan.skip(3).groups, plan.groups[3:])
    np.testing.assert_array_equal(plan.without(mel < 100).groups, plan.groups)
    part = plan.part(2, 5)
    assert len(part) == 3 and part.skip(1)[0].tolist() == plan[3].tolist()


def test_a_layout_is_described_and_marked():
    where = layout(10, 4, 250)
    assert "within groups of about 2 of 4 shards" in describe_layout(where)
    assert where.fingerprint() != layout(10, 4, 200).fingerprint()
    assert where.fingerprint() == layout(10, 4, 250).fingerprint()
