"""The loop, with steps that compute nothing: when hooks hear of what, and how it ends."""

import os
import signal

import numpy as np
import pytest
import tensorflow as tf

from myxtts.cluster.replicas import Replicas
from myxtts.training.ending import Ending
from myxtts.training.loop import (
    Hook,
    Listener,
    OutOfMemory,
    TrainingDiverged,
    TrainingLoop,
)


class CountingStep:
    """A step whose loss is its own number; it may fail at one of them."""

    is_async = is_eager = is_new = False

    def __init__(self, failure: Exception | None = None, at: int = 0):
        self.failure, self.at = failure, at
        self.taken: list[int] = []
        self.calls: list[int] = []

    def place(self, batch):
        return batch

    def __call__(self, batch, number: int) -> tf.Tensor:
        if number == self.at:
            raise self.failure
        self.taken.append(number)
        return tf.constant([float(number)])

    def take_all(self, batches, first: int) -> tf.Tensor:
        self.calls.append(len(batches))
        return tf.stack([self(batch, first + at) for at, batch in enumerate(batches)])

    def read(self, metrics: tf.Tensor) -> dict[str, float]:
        return {"loss": float(metrics[0])}

    def read_all(self, metrics: tf.Tensor) -> list[dict[str, float]]:
        return [self.read(row) for row in metrics]


class Diary(Hook):
    """Writes down what it hears, and how many steps had been taken by then."""

    def __init__(self, step: CountingStep, due: int = 0):
        self.step, self.due = step, due
        self.heard: list[tuple] = []
        self.records = []

    def start(self, step):
        self.heard.append(("start", step))

    def is_due(self, step):
        return bool(self.due) and step % self.due == 0

    def after_step(self, record):
        self.heard.append(("step", record.step, len(self.step.taken)))
        self.records.append(record)

    def after_epoch(self, epoch, step):
        self.heard.append(("epoch", epoch, step))

    def finish(self, step, reason):
        self.heard.append(("finish", step, reason))


def items(per_epoch: int = 2, epoch: int = 0, number: int = 0):
    """Endless batches of two utterances; the first batch of an epoch has utterances 0 and 1."""
    while True:
        for at in range(number, per_epoch):
            index = np.array([2 * at, 2 * at + 1])
            yield epoch, at, {"mel": tf.zeros([2, 7, 1]), "index": tf.constant(index)}
        epoch, number = epoch + 1, 0


def make_loop(step=None, hooks=(), epochs=100, total=5, done=0, **more) -> TrainingLoop:
    return TrainingLoop(
        step or CountingStep(),
        hooks,
        epochs,
        total,
        lambda index: [f"utt-{i}" for i in index],
        done,
        **more,
    )


def test_metrics_are_fetched_one_step_late_and_none_is_lost():
    step = CountingStep()
    diary = Diary(step)
    assert make_loop(step, [diary], total=3).run(items()) == Ending.FINISHED
    assert diary.heard == [
        ("start", 0),
        ("step", 1, 2),
        ("step", 2, 2),  # the epoch ends with it
        ("epoch", 0, 2),
        ("step", 3, 3),
        ("epoch", 1, 3),  # what there was of it
        ("finish", 3, Ending.FINISHED),
    ]
    assert [record.metrics["loss"] for record in diary.records] == [1.0, 2.0, 3.0]


def test_a_call_takes_several_steps_and_hooks_hear_of_each():
    step = CountingStep()
    diary = Diary(step)
    loop = make_loop(step, [diary], total=9, steps_per_call=3)
    assert loop.run(items(per_epoch=5)) == Ending.FINISHED
    assert step.calls == [3, 2, 3, 1]  # an epoch ends a call, and so does the run
    assert step.taken == list(range(1, 10))
    assert [record.metrics["loss"] for record in diary.records] == step.taken
    places = [(record.epoch, record.number) for record in diary.records]
    assert places == [(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 0), (1, 1), (1, 2), (1, 3)]
    assert [list(record.index) for record in diary.records][:2] == [[0, 1], [2, 3]]
    # A call late, but for the last of an epoch.
    assert ("step", 1, 5) in diary.heard and ("step", 5, 5) in diary.heard
    assert len(loop.recorder) + 1 == 9 - 2  # the first is apart, the rest of its call not counted


def test_a_step_that_a_hook_is_due_at_is_the_last_of_its_call():
    step = CountingStep()
    diary = Diary(step, due=5)
    make_loop(step, [diary, Hook()], total=12, steps_per_call=4).run(items(per_epoch=100))
    assert step.calls == [4, 1, 4, 1, 2]
    taken = {event[1]: event[2] for event in diary.heard if event[0] == "step"}
    assert taken[5] == 5 and taken[10] == 10


def test_the_times_of_a_call_are_shared_by_its_steps():
    step = CountingStep()
    diary = Diary(step)
    make_loop(step, [diary], total=8, steps_per_call=4).run(items(per_epoch=100))
    later = diary.records[4:]
    assert len({record.compute_ms for record in later}) == 1
    assert len({record.data_ms for record in later}) == 1


def test_a_signal_ends_the_run_after_the_call_it_came_in():
    class Ended(CountingStep):
        def take_all(self, batches, first):
            if first == 5:
                os.kill(os.getpid(), signal.SIGTERM)
            return super().take_all(batches, first)

    step = Ended()
    diary = Diary(step)
    ending = make_loop(step, [diary], total=50, steps_per_call=4).run(items(per_epoch=100))
    assert ending == Ending.SIGTERM and step.taken == list(range(1, 9))
    assert [record.step for record in diary.records] == step.taken
    assert diary.heard[-1] == ("finish", 8, Ending.SIGTERM)


def test_where_a_hook_is_due_it_finds_the_model_as_that_step_left_it():
    step = CountingStep()
    diary = Diary(step, due=2)
    make_loop(step, [diary, Hook()], total=5).run(items(per_epoch=10))
    taken = {event[1]: event[2] for event in diary.heard if event[0] == "step"}
    assert taken == {1: 2, 2: 2, 3: 4, 4: 4, 5: 5}


def test_a_record_says_where_in_the_plan_it_was_and_how_long_it_took():
    diary = Diary(CountingStep())
    make_loop(hooks=[diary], total=3).run(items())
    found = [(r.step, r.epoch, r.number, np.asarray(r.index).tolist()) for r in diary.records]
    assert found == [(1, 0, 0, [0, 1]), (2, 0, 1, [2, 3]), (3, 1, 0, [0, 1])]
    assert all(r.data_ms >= 0 and r.compute_ms > 0 for r in diary.records)


def test_it_ends_after_its_epochs():
    diary = Diary(CountingStep())
    assert make_loop(hooks=[diary], epochs=2, total=99).run(items(per_epoch=3)) == Ending.FINISHED
    assert diary.heard[-2:] == [("epoch", 1, 6), ("finish", 6, Ending.FINISHED)]


def test_it_goes_on_from_any_step():
    step = CountingStep()
    diary = Diary(step)
    make_loop(step, [diary], total=5, done=3).run(items(epoch=1, number=1))
    assert step.taken == [4, 5]
    assert diary.heard[0] == ("start", 3)
    assert [(r.epoch, r.number) for r in diary.records] == [(1, 1), (2, 0)]


def test_where_all_is_done_no_step_is_taken():
    step = CountingStep()
    diary = Diary(step)
    assert make_loop(step, [diary], total=5, done=5).run(items()) == Ending.FINISHED
    assert step.taken == [] and diary.heard == [("start", 5), ("finish", 5, Ending.FINISHED)]


def test_finite_batches_end_the_run():
    batches = [item for item, _ in zip(items(), range(3), strict=False)]
    diary = Diary(CountingStep())
    assert make_loop(hooks=[diary], total=99).run(batches) == Ending.FINISHED
    assert diary.heard[-1] == ("finish", 3, Ending.FINISHED)


def test_out_of_memory_names_the_utterances_and_what_to_do():
    step = CountingStep(tf.errors.ResourceExhaustedError(None, None, "OOM when allocating"), at=2)
    diary = Diary(step)
    with pytest.raises(OutOfMemory) as caught:
        make_loop(step, [diary]).run(items())
    message = str(caught.value)
    for part in ("step 2", "2 utterances", "7 frames", "utt-2, utt-3", "--batch-size"):
        assert part in message
    assert diary.heard[-1] == ("finish", 1, "failed")


@pytest.mark.parametrize("at", [1, 3])
def test_whatever_happens_every_hook_hears_of_the_end(at):
    step = CountingStep(RuntimeError("broken"), at=at)
    diaries = [Diary(step), Diary(step)]
    with pytest.raises(RuntimeError, match="broken"):
        make_loop(step, diaries).run(items())
    assert [diary.heard[-1] for diary in diaries] == [("finish", at - 1, "failed")] * 2


def test_a_hook_that_raises_ends_the_run():
    class Strict(Hook):
        def after_step(self, record):
            raise ValueError("not good enough")

    diary = Diary(CountingStep())
    with pytest.raises(ValueError, match="not good enough"):
        make_loop(hooks=[Strict(), diary]).run(items())
    assert diary.heard[-1][-1] == "failed"


def test_a_hook_that_cannot_finish_keeps_none_from_it():
    class Clumsy(Hook):
        def finish(self, step, reason):
            raise OSError("disk full")

    step = CountingStep()
    diaries = [Diary(step), Diary(step)]
    with pytest.raises(OSError, match="disk full"):
        make_loop(step, [diaries[0], Clumsy(), diaries[1]], total=2).run(items())
    assert [diary.heard[-1] for diary in diaries] == [("finish", 2, Ending.FINISHED)] * 2


def test_who_comes_after_a_hook_that_finds_the_run_diverged_hears_that_it_failed():
    class Judge(Hook):
        def finish(self, step, reason):
            raise TrainingDiverged("no number")

    diary = Diary(step := CountingStep())
    with pytest.raises(TrainingDiverged):
        make_loop(step, [Judge(), diary], total=2).run(items())
    assert diary.heard[-1] == ("finish", 2, Ending.FAILED)


def test_every_hook_takes_reports_until_all_have_finished():
    told = []

    class Board(Listener):
        is_open = True

        def record_validation(self, step, metrics):
            assert self.is_open
            told.append((step, metrics))

        def close(self):
            self.is_open = False

    class Producer(Hook):
        def __init__(self, listener):
            self.listener = listener

        def finish(self, step, reason):
            self.listener.record_validation(step, {"loss": 1.0})

    board = Board()
    make_loop(hooks=[Producer(board), board, Producer(board)], total=2).run(items())
    assert told == [(2, {"loss": 1.0})] * 2 and not board.is_open


@pytest.mark.parametrize("method", ["after_step", "after_epoch", "finish", "close"])
def test_a_listener_that_raises_is_logged_and_changes_nothing(method, caplog):
    def fail(self, *heard):
        raise ConnectionError("no route to host")

    broken = type("Broken", (Listener,), {method: fail})
    diary = Diary(step := CountingStep())
    assert make_loop(step, [broken(), diary], total=3).run(items()) == Ending.FINISHED
    assert diary.heard[-1] == ("finish", 3, Ending.FINISHED)
    message = "Broken failed, training continues: ConnectionError: no route to host"
    assert caplog.messages[0] == message and caplog.messages.count(message) == 1
    more = {"after_step": ["Broken failed 3 times"], "after_epoch": ["Broken failed 2 times"]}
    assert caplog.messages[1:] == more.get(method, [])


def test_an_error_of_a_hook_is_kept_whatever_a_listener_raises():
    class Broken(Listener):
        def finish(self, step, reason):
            raise ConnectionError("no route to host")

    class Clumsy(Hook):
        def finish(self, step, reason):
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        make_loop(hooks=[Broken(), Clumsy(), Broken()], total=2).run(items())


class Signal(Hook):
    """Sends this process a signal after a step."""

    def __init__(self, number: int, at: int, times: int = 1):
        self.number, self.at, self.times = number, at, times

    def is_due(self, step):
        return step == self.at

    def after_step(self, record):
        if record.step == self.at:
            for _ in range(self.times):
                os.kill(os.getpid(), self.number)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_run_after_the_step_and_is_its_reason(number):
    before = [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)]
    step = CountingStep()
    diary = Diary(step)
    reason = make_loop(step, [Signal(number, 2), diary], total=99).run(items())
    assert reason == signal.Signals(number).name
    assert step.taken == [1, 2]
    assert diary.heard[-1] == ("finish", 2, reason)
    assert [r.step for r in diary.records] == [1, 2]
    assert [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)] == before


def test_a_second_signal_interrupts_at_once_and_saves_nothing():
    step = CountingStep()
    diary = Diary(step)
    with pytest.raises(KeyboardInterrupt):
        make_loop(step, [Signal(signal.SIGINT, 2, times=2), diary], total=99).run(items())
    assert diary.heard[-1] == ("finish", 2, "failed")


def test_a_second_sigterm_is_the_same_request():
    """A scheduler that ends a whole process group and a launcher both pass it on."""
    step = CountingStep()
    diary = Diary(step)
    reason = make_loop(step, [Signal(signal.SIGTERM, 2, times=2), diary], total=99).run(items())
    assert reason == "SIGTERM"
    assert diary.heard[-1] == ("finish", 2, reason)


class Two(Replicas):
    """One of two replicas."""

    count = 2


class AskedStep(CountingStep):
    """A step in which all replicas learn that one of them was asked to end."""

    def __init__(self, asked_at: int):
        super().__init__()
        self.asked_at = asked_at

    def read(self, metrics):
        number = float(metrics[0])
        return {"loss": number, "asked_to_end": float(number == self.asked_at)}


@pytest.mark.parametrize("due", [0, 1, 3, 4])
def test_replicas_end_after_the_same_step_whatever_their_hooks(due):
    step = AskedStep(asked_at=3)
    diary = Diary(step, due)
    loop = make_loop(step, [diary], total=100)
    loop.replicas = Two()
    assert loop.run(items()) == Ending.SIGTERM
    assert step.taken == [1, 2, 3, 4]
    # The history says nothing of it: runs that learn the same have the same one.
    assert [record.metrics for record in diary.records] == [{"loss": float(n)} for n in range(1, 5)]
