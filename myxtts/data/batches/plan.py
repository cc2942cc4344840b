"""The plan: which utterances share a batch, decided by NumPy from (seed, epoch).

Only where a disk is too small for the cache it also depends on which shard an utterance is in.
"""

import hashlib
from dataclasses import dataclass, replace

import numpy as np

from myxtts.errors import UserError

# Padded text lengths follow the padded mel length, rounded up to this.
TEXT_MULTIPLE = 8
# Groups of a speaker that are sorted by length together: alike enough, and other ones each epoch.
_GROUPS_PER_CHUNK = 4


@dataclass(frozen=True, slots=True)
class BatchOptions:
    """How large batches are and how they are drawn."""

    batch_size: int = 32
    max_frames: int = 0
    pool_batches: int = 50
    multiple: int = 32
    balance_speakers: bool = False
    per_speaker: int = 0
    seed: int = 42
    alike: int = 1  # batches of one shape that follow each other, where there are as many


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """Batches as slices of one order; padded lengths are known before anything is read."""

    order: np.ndarray  # [utterances] positions in the cache
    bounds: np.ndarray  # [batches + 1] slices of the order
    frames: np.ndarray  # [batches] padded mel lengths
    tokens: np.ndarray  # [batches] padded text lengths
    groups: np.ndarray | None = None  # [batches] the group of shards that each is drawn from

    def __len__(self) -> int:
        return len(self.frames)

    def __getitem__(self, batch: int) -> np.ndarray:
        return self.order[self.bounds[batch] : self.bounds[batch + 1]]

    @property
    def planned(self) -> np.ndarray:
        """The positions of all utterances, batch by batch."""
        return self.order[self.bounds[0] : self.bounds[-1]]

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.bounds)

    def skip(self, batches: int) -> "BatchPlan":
        """What is left after some batches: this is how a run resumes in the middle of an epoch."""
        if not 0 <= batches <= len(self):
            raise UserError(
                f"cannot resume after batch {batches} of an epoch of {len(self)}: "
                "the corpus or the batch size has changed since"
            )
        return self.part(batches, len(self))

    def part(self, first: int, last: int) -> "BatchPlan":
        """Some batches in a row."""
        rows = slice(first, last)
        groups = None if self.groups is None else self.groups[rows]
        bounds = self.bounds[first : last + 1]
        return BatchPlan(self.order, bounds, self.frames[rows], self.tokens[rows], groups)

    def without(self, bad: np.ndarray) -> "BatchPlan":
        """The same batches without some utterances; one of which nothing is left keeps its row."""
        planned = self.planned
        keep = ~bad[planned]
        kept_before = np.concatenate([[0], np.cumsum(keep)])
        bounds = kept_before[self.bounds - self.bounds[0]]
        return BatchPlan(planned[keep], bounds, self.frames, self.tokens, self.groups)

    def shapes(self) -> set[tuple[int, int, int]]:
        """The distinct (batch, tokens, frames) that a compiled step will see."""
        rows = zip(self.sizes.tolist(), self.tokens.tolist(), self.frames.tolist(), strict=True)
        return set(rows)

    def padding_waste(self, mel_lengths: np.ndarray) -> float:
        """The share of the batches' frames that is padding."""
        planned = self.order[self.bounds[0] : self.bounds[-1]]
        padded = int((self.frames.astype(np.int64) * self.sizes).sum())
        return 1.0 - int(mel_lengths[planned].sum(dtype=np.int64)) / max(padded, 1)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where utterances lie, for a disk that holds some shards at a time."""

    shard: np.ndarray  # [utterances] the shard of each
    sizes: np.ndarray  # [shards] bytes
    limit: int  # bytes of the shards that are shuffled together

    def fingerprint(self) -> str:
        """Changes with anything that the groups follow from."""
        content = np.concatenate([self.shard, self.sizes, [self.limit]]).astype(np.int64)
        return hashlib.blake2b(content.tobytes(), digest_size=8).hexdigest()

    def draw(self, rng: np.random.Generator) -> np.ndarray:
        """Shuffle the shards and cut them into groups: the group of each shard."""
        groups, filled, number = np.zeros(len(self.sizes), np.int64), 0, 0
        for shard in rng.permutation(len(self.sizes)).tolist():
            size = int(self.sizes[shard])
            if filled and filled + size > self.limit:
                filled, number = 0, number + 1
            groups[shard], filled = number, filled + size
        return groups


def describe_layout(layout: Layout) -> str:
    """What a disk that is too small means for the order of an epoch."""
    fit = int(layout.limit // max(1.0, float(layout.sizes.mean())))
    return (
        f"{layout.sizes.sum() / 1e9:.3f} GB of features do not fit into --local-cache-gb: shuffles "
        f"within groups of about {fit:,} of {len(layout.sizes):,} shards"
    )


def plan_epoch(
    text_lengths: np.ndarray,
    mel_lengths: np.ndarray,
    options: BatchOptions,
    epoch: int = 0,
    speaker: np.ndarray | None = None,
    layout: Layout | None = None,
) -> BatchPlan:
    """Shuffle globally, sort within pools of about `pool_batches` batches, cut, shuffle batches.

    Batches of similar lengths waste little padding, while utterances seldom meet again in the next
    epoch. In epoch 0 the batch with the most frames comes first, so that memory runs out at once
    or never; the batch of what is left over comes last. With `alike`, up to so many batches of a
    shape follow each other from where the first of them stands. Where several utterances of a
    speaker are to share a batch, groups of them are drawn, sorted and cut like single ones. With a
    layout all that happens within groups of shards, one after the other, each of which the disk
    can hold.
    """
    rng = np.random.default_rng((options.seed, epoch))
    if layout is None:
        order, bounds = _draw_batches(mel_lengths, options, epoch == 0, speaker, rng)
        return _with_shapes(order, bounds, text_lengths, mel_lengths, options.multiple)
    order, bounds, groups = _draw_in_groups(mel_lengths, options, epoch == 0, speaker, rng, layout)
    plan = _with_shapes(order, bounds, text_lengths, mel_lengths, options.multiple)
    return replace(plan, groups=groups)


def _draw_in_groups(
    mel_lengths: np.ndarray,
    options: BatchOptions,
    is_first: bool,
    speaker: np.ndarray | None,
    rng: np.random.Generator,
    layout: Layout,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Order, bounds and groups of batches; in epoch 0 the group of the longest utterance leads."""
    group = layout.draw(rng)[layout.shard]
    numbers = np.unique(group).tolist()
    if is_first and numbers:
        numbers.sort(key=lambda number: number != group[np.argmax(mel_lengths)])
    orders, bounds, groups = [np.zeros(0, np.int64)], [np.zeros(1, np.int64)], []
    for at, number in enumerate(numbers):
        members = np.flatnonzero(group == number)
        voices = None if speaker is None else speaker[members]
        leads = is_first and at == 0
        order, cuts = _draw_batches(mel_lengths[members], options, leads, voices, rng)
        orders.append(members[order])
        bounds.append(bounds[-1][-1] + cuts[1:])
        groups.append(np.full(len(cuts) - 1, at))
    return np.concatenate(orders), np.concatenate(bounds), np.concatenate([*groups, []]).astype(int)


def _draw_batches(
    mel_lengths: np.ndarray,
    options: BatchOptions,
    is_first: bool,
    speaker: np.ndarray | None,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Order and bounds of the batches of an epoch; of the first one, the costliest leads."""
    drawn = _draw(len(mel_lengths), options.balance_speakers, speaker, rng)
    drawn, group = _grouped(drawn, speaker, mel_lengths, options.per_speaker, rng)
    # What is left over is cut from the shortest, so that it never is the batch with most frames.
    spare = 0 if options.max_frames else len(drawn) % options.batch_size
    rank = np.maximum(np.arange(len(drawn)) - spare, 0)
    pool = rank // (options.pool_batches * options.batch_size)
    order = drawn[_sorted_in_pools(mel_lengths[drawn], group, pool, options.per_speaker)]
    padded = round_up(mel_lengths[order], options.multiple)
    bounds = _cut(padded[spare:], pool[spare:], options) + spare
    bounds = np.concatenate([[0], bounds]) if spare else bounds
    cost = padded[bounds[1:] - 1].astype(np.int64) * np.diff(bounds)
    shuffled = _shuffled(cost, is_first, spare > 0, rng)
    if options.alike > 1 and len(shuffled):
        shuffled = _side_by_side(shuffled, _shape_numbers(padded, bounds), options.alike, spare > 0)
    return _reorder(order, bounds, shuffled)


def plan_in_order(
    text_lengths: np.ndarray, mel_lengths: np.ndarray, options: BatchOptions
) -> BatchPlan:
    """A plan without chance, for validation: sorted by length, every utterance once."""
    order = np.argsort(mel_lengths, kind="stable")
    padded = round_up(mel_lengths[order], options.multiple)
    bounds = _cut(padded, np.zeros(len(order), np.int64), options)
    return _with_shapes(order, bounds, text_lengths, mel_lengths, options.multiple)


def round_up(lengths: np.ndarray, multiple: int) -> np.ndarray:
    return -(-lengths // multiple) * multiple


def text_padding(
    text_lengths: np.ndarray, mel_lengths: np.ndarray, frames: np.ndarray, multiple: int
) -> np.ndarray:
    """A padded text length for every padded mel length, long enough for all that may meet there.

    One text length per mel length keeps the number of shapes at the number of mel lengths.
    """
    bucket = -(-mel_lengths // multiple)
    longest = np.zeros(int(bucket.max(initial=0)) + 1, np.int64)
    np.maximum.at(longest, bucket, text_lengths)
    longest = np.maximum.accumulate(longest)
    return round_up(longest[frames // multiple], TEXT_MULTIPLE).astype(np.int32)


def _draw(
    count: int, balance: bool, speaker: np.ndarray | None, rng: np.random.Generator
) -> np.ndarray:
    """Every utterance once, or every speaker equally often, in random order."""
    if not balance or speaker is None:
        return rng.permutation(count)
    members = [np.flatnonzero(speaker == s) for s in np.unique(speaker)]
    quotas = np.full(len(members), count // len(members))
    quotas[rng.permutation(len(members))[: count % len(members)]] += 1
    drawn = [np.resize(rng.permutation(m), quota) for m, quota in zip(members, quotas, strict=True)]
    return rng.permutation(np.concatenate(drawn))


def _grouped(
    drawn: np.ndarray,
    speaker: np.ndarray | None,
    lengths: np.ndarray,
    size: int,
    rng: np.random.Generator,
) -> tuple[np.ndarray, np.ndarray]:
    """Utterances in groups of one speaker and of similar lengths, and the group of each.

    Groups that are not full come first: together with the left-over batch, which does too, they
    keep the bounds of all other batches between groups.
    """
    if size < 2 or speaker is None:
        return drawn, np.arange(len(drawn))
    order = drawn[np.argsort(speaker[drawn], kind="stable")]
    place = _places(speaker[order])
    chunk = place // (_GROUPS_PER_CHUNK * size)
    order = order[np.lexsort((lengths[order], chunk, speaker[order]))]
    starts = np.flatnonzero(place % size == 0)
    group = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(order))))
    counts = np.bincount(group)
    shuffled = rng.permutation(len(counts))
    by_group = np.empty(len(counts), np.int64)
    by_group[shuffled[np.argsort(counts[shuffled] == size, kind="stable")]] = np.arange(len(counts))
    at = np.argsort(by_group[group], kind="stable")
    return order[at], by_group[group][at]


def _places(sorted_values: np.ndarray) -> np.ndarray:
    """How many equal ones stand before each of sorted values."""
    return np.arange(len(sorted_values)) - np.searchsorted(sorted_values, sorted_values)


def _sorted_in_pools(
    lengths: np.ndarray, group: np.ndarray, pool: np.ndarray, size: int
) -> np.ndarray:
    """The order by length within each pool; a group stays together, by its longest."""
    counts = np.bincount(group)
    longest = np.zeros(len(counts), lengths.dtype)
    np.maximum.at(longest, group, lengths)
    is_full = counts >= size
    return np.lexsort((group, longest[group], is_full[group], pool))


def _cut(padded: np.ndarray, pool: np.ndarray, options: BatchOptions) -> np.ndarray:
    """Bounds of batches that stay within a pool, a count and a budget of frames."""
    if not len(padded):
        return np.zeros(1, np.int64)
    starts = np.flatnonzero(np.diff(pool, prepend=-1))
    ends = np.append(starts[1:], len(padded))
    pieces = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if options.max_frames:
            pieces.append(_cut_by_frames(padded[start:end], options) + start)
        else:
            pieces.append(np.arange(start, end, options.batch_size))
    return np.append(np.concatenate(pieces), len(padded)).astype(np.int64)


def _cut_by_frames(padded: np.ndarray, options: BatchOptions) -> np.ndarray:
    """Starts of batches in one pool; lengths ascend, so the last utterance sets the padding."""
    starts, at = [], 0
    counts = np.arange(1, options.batch_size + 1)
    while at < len(padded):
        window = padded[at : at + options.batch_size].astype(np.int64)
        fits = window * counts[: len(window)] <= options.max_frames
        starts.append(at)
        at += max(1, int(np.count_nonzero(fits)))
    return np.array(starts, np.int64)


def _shuffled(
    cost: np.ndarray, costliest_first: bool, first_last: bool, rng: np.random.Generator
) -> np.ndarray:
    """A random order of batches, but for the costliest and for the first, if so wanted."""
    order = rng.permutation(len(cost))
    if first_last:
        order = np.append(order[order != 0], 0)
    if costliest_first and len(order):
        place = int(np.argmax(order == np.argmax(cost)))
        order[[0, place]] = order[[place, 0]]
    return order


def _shape_numbers(padded: np.ndarray, bounds: np.ndarray) -> np.ndarray:
    """A number for the shape of each batch."""
    frames = np.maximum.reduceat(padded, bounds[:-1])
    shapes = np.stack([np.diff(bounds), frames], axis=1)
    return np.unique(shapes, axis=0, return_inverse=True)[1].reshape(-1)


def _side_by_side(
    order: np.ndarray, shapes: np.ndarray, alike: int, keeps_last: bool
) -> np.ndarray:
    """The order with groups of up to `alike` batches of a shape where their first one stands."""
    moved = order[: len(order) - keeps_last]
    by_shape = np.argsort(shapes[moved], kind="stable")
    places = np.empty(len(moved), np.int64)
    places[by_shape] = _places(shapes[moved][by_shape])
    group = shapes[moved] * (len(moved) + 1) + places // alike
    _, first, number = np.unique(group, return_index=True, return_inverse=True)
    at = np.argsort(first[number.reshape(-1)], kind="stable")
    return np.concatenate([moved[at], order[len(moved) :]])


def _reorder(
    order: np.ndarray, bounds: np.ndarray, batch_order: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    sizes = np.diff(bounds)[batch_order]
    new_bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    shift = np.repeat(bounds[:-1][batch_order] - new_bounds[:-1], sizes)
    return order[np.arange(len(order)) + shift], new_bounds


def _with_shapes(
    order: np.ndarray,
    bounds: np.ndarray,
    text_lengths: np.ndarray,
    mel_lengths: np.ndarray,
    multiple: int,
) -> BatchPlan:
    longest = np.maximum.reduceat(mel_lengths[order], bounds[:-1]) if len(bounds) > 1 else order
    frames = round_up(longest, multiple).astype(np.int32)
    tokens = text_padding(text_lengths, mel_lengths, frames, multiple)
    return BatchPlan(order, bounds, frames, tokens)
