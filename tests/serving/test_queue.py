"""Many requests, one voice: batches, order, urgency, cancelling, and a queue that is full."""

import queue as queues
import threading
import time

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from myxtts.errors import UserError
from myxtts.serving import queue as queue_module
from myxtts.serving.metrics import Metrics
from myxtts.serving.queue import QueueFullError, SpeechQueue, StoppedError
from tests.helpers.fake_voice import FakeModel
from tests.helpers.speech_server import SECONDS, HeldModel, fake_synthesizer


class Reader:
    """Takes what a job hands over."""

    def __init__(self):
        self._given = queues.SimpleQueue()

    def __call__(self, piece):
        self._given.put(piece)

    def take(self):
        return self._given.get(timeout=SECONDS)

    def rest(self, job) -> list:
        """All speech until the end."""
        found = []
        while (piece := self.take()) is not None:
            if isinstance(piece, Exception):
                raise piece
            found.append(piece)
            job.was_read()
        return found


@pytest.fixture
def opened():
    """Makes queues that are closed afterwards."""
    made = []

    def open_queue(most_jobs=8, most_lines=8) -> SpeechQueue:
        made.append(SpeechQueue(most_jobs, most_lines, Metrics()))
        return made[-1]

    yield open_queue
    for one in made:
        one.close()


@pytest.fixture
def cores(monkeypatch):
    """Makes queues believe in so many cores."""
    return lambda count: monkeypatch.setattr(queue_module, "available_cores", lambda: count)


def submit(queue, voice, text, **options):
    reader = Reader()
    job = queue.submit(voice, lambda: voice.plan(text, **options), reader, len(text))
    return job, reader


def test_a_text_sounds_as_it_does_without_a_queue(opened):
    voice = fake_synthesizer()
    job, reader = submit(opened(), voice, "One. Two two. Three.")
    parts = reader.rest(job)
    assert [part.sentences[0] for part in parts] == ["One.", "Two two.", "Three."]
    whole = np.concatenate([part.samples for part in parts])
    np.testing.assert_array_equal(whole, voice.speak("One. Two two. Three.").samples)


def test_lines_of_several_requests_are_said_in_one_batch_and_each_gets_its_own(opened, cores):
    cores(1)
    model = HeldModel()
    voice, queue = fake_synthesizer(model), opened()
    first = submit(queue, voice, "Zero.")
    assert model.asked.wait(SECONDS)
    others = [submit(queue, voice, f"{word}. After it.") for word in ("One", "Two", "Three")]
    model.go.set()
    first[1].rest(first[0])
    for word, (job, reader) in zip(("One", "Two", "Three"), others, strict=True):
        said = [part.sentences[0] for part in reader.rest(job)]
        assert said == [f"{word}.", "After it."]
    assert [len(batch) for batch in model.batches][:2] == [1, 3]


def test_lines_of_one_text_that_are_said_on_several_cores_keep_their_order(opened, cores):
    cores(4)

    class Uneven(FakeModel):
        """Takes longer for the first of two lines."""

        def synthesize(self, tokens, text_lengths, *others):
            time.sleep(0.002 * max(text_lengths))
            return super().synthesize(tokens, text_lengths, *others)

    voice, queue = fake_synthesizer(Uneven()), opened()
    sentences = ["Go.", "This is a much longer one.", "No.", "And this one is long too.", "Yes."]
    job, reader = submit(queue, voice, " ".join(sentences))
    assert [part.sentences[0] for part in reader.rest(job)] == sentences
    assert any(len(batch) == 1 for batch in voice.voice.model.batches)


def test_who_has_heard_nothing_comes_before_who_has(opened):
    model = HeldModel()
    voice, queue = fake_synthesizer(model), opened()
    long = submit(queue, voice, "One. Two two. Three. Four.")
    assert model.asked.wait(SECONDS)
    new = submit(queue, voice, "Hello.")
    model.go.set()
    long[1].rest(long[0])
    new[1].rest(new[0])
    tokens = [batch for batch in model.batches]
    assert tokens[0] == (len("One.") + 2,) and tokens[1] == (len("Hello.") + 2,)


def test_without_batches_every_line_is_said_by_itself(opened):
    model = FakeModel()
    voice, queue = fake_synthesizer(model), opened(most_lines=1)
    jobs = [submit(queue, voice, "One. Two.") for _ in range(3)]
    for job, reader in jobs:
        reader.rest(job)
    assert [len(batch) for batch in model.batches] == [1] * 6


def test_a_request_that_is_cancelled_is_not_spoken_further_and_leaves_nothing(opened):
    model = HeldModel()
    voice, queue = fake_synthesizer(model), opened()
    job, _ = submit(queue, voice, "One. Two. Three. Four. Five. Six.")
    assert model.asked.wait(SECONDS)
    job.cancel()
    model.go.set()
    other, reader = submit(queue, voice, "Hello.")
    reader.rest(other)
    assert len(model.batches) == 2 and len(queue) == 0
    assert queue.metrics.cancelled.total() == 1


def test_a_slow_reader_is_not_spoken_far_ahead_of(opened):
    model = FakeModel()
    voice, queue = fake_synthesizer(model), opened()
    text = " ".join(f"Number {number}." for number in range(20))
    job, reader = submit(queue, voice, text)
    for _ in range(8):
        reader.take()
    other, another = submit(queue, voice, "Hello.")
    another.rest(other)
    assert sum(len(batch) for batch in model.batches) < 15
    for _ in range(8):
        job.was_read()
    assert len(reader.rest(job)) == 12


def test_a_full_queue_says_when_to_come_back(opened):
    model = HeldModel()
    voice, queue = fake_synthesizer(model), opened(most_jobs=2)
    jobs = [submit(queue, voice, "Hello.") for _ in range(2)]
    with pytest.raises(QueueFullError) as raised:
        submit(queue, voice, "Hello.")
    assert 1 <= raised.value.retry_after <= 60
    assert queue.metrics.rejected.total() == 1
    jobs[0][0].cancel()
    third = submit(queue, voice, "Hello.")  # there is room again
    model.go.set()
    third[1].rest(third[0])


def test_a_line_that_cannot_be_said_fails_its_own_request_alone(opened):
    class Picky(HeldModel):
        def synthesize(self, tokens, text_lengths, *others):
            out = super().synthesize(tokens, text_lengths, *others)
            out["mel_lengths"][np.array(text_lengths) == len("Bad bad.") + 2] = 0
            return out

    model = Picky()
    voice, queue = fake_synthesizer(model), opened()
    first = submit(queue, voice, "Zero.")
    assert model.asked.wait(SECONDS)
    good, bad = submit(queue, voice, "Good."), submit(queue, voice, "Bad bad.")
    model.go.set()
    first[1].rest(first[0])
    assert [part.sentences for part in good[1].rest(good[0])] == [("Good.",)]
    with pytest.raises(UserError, match="Bad bad."):
        bad[1].rest(bad[0])


def test_a_model_that_breaks_is_told_and_the_queue_goes_on(opened):
    class Broken(FakeModel):
        def synthesize(self, *said):
            raise RuntimeError("out of order")

    queue = opened()
    job, reader = submit(queue, fake_synthesizer(Broken()), "Hello.")
    with pytest.raises(RuntimeError, match="out of order"):
        reader.rest(job)
    job, reader = submit(queue, fake_synthesizer(), "Hello.")
    assert len(reader.rest(job)) == 1


def test_what_is_wrong_with_a_text_is_told_to_its_reader(opened):
    queue = opened()
    job, reader = submit(queue, fake_synthesizer(), "Hello.", language="xx")
    with pytest.raises(UserError, match="xx"):
        reader.rest(job)
    assert len(queue) == 0


def test_blas_does_not_spread_what_the_queue_spreads(opened):
    used = []

    class Curious(FakeModel):
        def synthesize(self, *said):
            used.extend(
                one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"
            )
            return super().synthesize(*said)

    job, reader = submit(opened(), fake_synthesizer(Curious()), "Hello.")
    assert len(reader.rest(job)) == 1
    assert used and set(used) == {1}


def test_closing_tells_whoever_waits():
    model = HeldModel()
    voice, queue = fake_synthesizer(model), SpeechQueue(8, 8, Metrics())
    job, reader = submit(queue, voice, "One. Two.")
    assert model.asked.wait(SECONDS)
    closing = threading.Thread(target=queue.close)
    closing.start()
    with pytest.raises(StoppedError):
        while True:
            submit(queue, voice, "Hello.")  # until it is closed
    model.go.set()
    closing.join(SECONDS)
    with pytest.raises(StoppedError):
        reader.rest(job)
