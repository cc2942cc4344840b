"""One thread that speaks for all requests: a batch of their lines at a time, the most urgent first.

A request that has heard nothing yet is due since it came; another one when what it was given has
been played. A batch has lines of one voice, and as many as take about `_BATCH_SECONDS`, so that
nobody who comes next waits for long.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

from myxtts.audio.threads import single_threaded_blas
from myxtts.errors import UserError
from myxtts.inference.speech import Speech
from myxtts.inference.synthesizer import Line, Synthesizer
from myxtts.monitoring.cores import available_cores
from myxtts.serving.limits import GATHER_SECONDS
from myxtts.serving.metrics import Metrics

logger = logging.getLogger(__name__)

# What a job hands over: speech, its end (None), or why there will be no more.
Deliver = Callable[["Speech | None | Exception"], None]
Plan = Callable[[], Iterator[Line]]
Spoken = tuple[int, Speech | Exception]  # a line by its number in the batch

_MOST_UNREAD = 8  # pieces that a slow reader has waiting
_BATCH_SECONDS = 0.25
_OPENING_SECONDS = 0.15
_USUAL_TOKEN_SECONDS = 0.004  # before anything was measured
_LONGEST_WAIT = 60
_CROWD_SECONDS = 5.0  # for which several requests at once make others likely


class QueueFullError(Exception):
    """There are as many requests as are allowed; `retry_after` is in seconds."""

    def __init__(self, retry_after: int):
        super().__init__(f"too many requests are waiting: try again in {retry_after} s")
        self.retry_after = retry_after


class StoppedError(Exception):
    """The server stops before all was said."""


class Job:
    """One text on its way to being spoken. `cancel` may be called at any time, from any thread."""

    def __init__(
        self,
        queue: "SpeechQueue",
        synthesizer: Synthesizer,
        plan: Plan,
        deliver: Deliver,
        size: int,
    ):
        self.synthesizer, self.size = synthesizer, size
        self.has_sounded = self.is_cancelled = self.is_over = False
        self.came = self.due = time.monotonic()
        self.line: Line | None = None
        # Each is written by one thread alone.
        self._num_given = self._num_read = 0
        self._queue, self._plan, self._deliver = queue, plan, deliver
        self._lines: Iterator[Line] | None = None
        self._problem: Exception | None = None

    def cancel(self) -> None:
        """Say no more of it; nothing happens where all was said."""
        if not self.is_over and not self.is_cancelled:
            self.is_cancelled = True
            self._queue.metrics.cancelled.add()
            self._queue.wake()

    def was_read(self) -> None:
        """Tell that a piece was taken, which makes room for the next."""
        self._num_read += 1
        self._queue.wake()

    @property
    def is_ready(self) -> bool:
        return self._num_given - self._num_read < _MOST_UNREAD and not self.is_cancelled

    def fetch(self) -> bool:
        """Read the next line, and return whether there is one."""
        if self._problem is not None:
            raise self._problem
        if self.line is None and not self.is_cancelled:
            if self._lines is None:
                self._lines = self._plan()
            self.line = next(self._lines, None)
        return self.line is not None

    def fetch_early(self) -> bool:
        """The same while a line is being spoken: what is wrong with the next one is told later."""
        try:
            return self.fetch()
        except Exception as error:  # `fetch` raises it
            self._problem = error
            return False

    def take(self) -> Line:
        line, self.line = self.line, None
        assert line is not None
        return line

    def hand_over(self, speech: Speech) -> None:
        now = time.monotonic()
        if not self.has_sounded:
            self.has_sounded, self.due = True, now
            self._queue.metrics.first_sound.observe(now - self.came)
        self.due += speech.seconds
        self._num_given += 1
        if not self.is_cancelled:
            self._deliver(speech)

    def end(self, error: Exception | None = None) -> None:
        """Tell the reader that nothing follows, and forget the text."""
        self._lines = self.line = None
        self.is_over = True
        if not self.is_cancelled:
            self._deliver(error)


class SpeechQueue:
    """Speaks the texts of all requests, until it is closed."""

    def __init__(self, most_jobs: int, most_lines: int, metrics: Metrics):
        self.metrics = metrics
        self._most_jobs, self._most_lines = most_jobs, most_lines
        self._jobs: list[Job] = []
        self._changed = threading.Condition()
        self._is_closed = False
        self._token_seconds = _USUAL_TOKEN_SECONDS
        self._crowded_until = 0.0
        self._cores = available_cores()
        self._pool = ThreadPoolExecutor(self._cores, "vocoder")
        self._thread = threading.Thread(target=self._work, name="speech", daemon=True)
        self._thread.start()

    def __len__(self) -> int:
        return len(self._jobs)

    def submit(self, synthesizer: Synthesizer, plan: Plan, deliver: Deliver, size: int) -> Job:
        """Queue a text of about so many letters; `plan` and `deliver` are called by the thread."""
        job = Job(self, synthesizer, plan, deliver, size)
        with self._changed:
            if self._is_closed:
                raise StoppedError("the server is stopping")
            self._jobs = [one for one in self._jobs if not one.is_cancelled]
            if len(self._jobs) >= self._most_jobs:
                self.metrics.rejected.add()
                raise QueueFullError(self._wait_seconds())
            self._jobs.append(job)
            if len(self._jobs) > 1:
                self._crowded_until = job.came + _CROWD_SECONDS
            self._changed.notify_all()
        return job

    def wake(self) -> None:
        """Look again at who is ready."""
        with self._changed:
            self._changed.notify_all()

    def close(self) -> None:
        """Stop after the batch that is being spoken; whoever still waits is told."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join()
        self._pool.shutdown()

    def _wait_seconds(self) -> int:
        """About how long all that waits will take."""
        seconds = self._token_seconds * sum(job.size for job in self._jobs)
        return max(1, min(_LONGEST_WAIT, round(seconds)))

    def _work(self) -> None:
        # Lines are what is spread over the cores.
        with single_threaded_blas():
            while (ready := self._wait()) is not None:
                if batch := self._choose(ready):
                    self._say(batch)
        for job in self._jobs:
            job.end(StoppedError("the server is stopping"))
        self._jobs = []

    def _wait(self) -> list[Job] | None:
        """The jobs that can go on, as soon as there are any; None when closed."""
        with self._changed:
            was_idle = False
            while not self._is_closed:
                self._jobs = [job for job in self._jobs if not job.is_cancelled]
                ready = [job for job in self._jobs if job.is_ready]
                if ready and was_idle and self._may_gather():
                    self._changed.wait_for(self._has_a_batch, GATHER_SECONDS)
                    was_idle = False
                elif ready:
                    return ready
                else:
                    self._changed.wait()
                    was_idle = True
            return None

    def _may_gather(self) -> bool:
        """Whether others are likely to come at once: who is alone does not wait for them."""
        return self._most_lines > 1 and time.monotonic() < self._crowded_until

    def _has_a_batch(self) -> bool:
        return len(self._jobs) >= min(self._most_lines, self._most_jobs)

    def _choose(self, ready: Sequence[Job]) -> list[tuple[Job, Line]]:
        """The lines to say next: what is due first, and what goes with it."""
        chosen: list[tuple[Job, Line]] = []
        ordered = sorted(ready, key=lambda job: job.due)
        seconds = _BATCH_SECONDS if ordered[0].has_sounded else _OPENING_SECONDS
        room = seconds / self._token_seconds
        for job in ordered:
            if len(chosen) == self._most_lines:
                break
            if (chosen and not _fit(job, chosen[0][0])) or not self._fetch(job):
                continue
            assert job.line is not None
            room -= len(job.line.tokens)
            if chosen and room < 0:
                break
            chosen.append((job, job.take()))
        # A lone reader keeps all cores busy with several lines.
        lone = chosen[0][0] if len(chosen) == 1 else None
        while lone and lone.has_sounded and len(chosen) < min(self._cores, self._most_lines):
            if not lone.fetch_early():
                break
            chosen.append((lone, lone.take()))
        return chosen

    def _fetch(self, job: Job) -> bool:
        """Have a job read its next line; one that has none, or cannot, is over."""
        error: Exception | None = None
        try:
            if job.fetch():
                return True
        except Exception as raised:  # the thread speaks for the others too
            error = raised
            if not isinstance(raised, UserError):
                logger.exception("a text could not be read")
        self._end(job, error)
        return False

    def _say(self, batch: Sequence[tuple[Job, Line]]) -> None:
        """Say lines, a part of them on each core, and hand them over as they are ready."""
        began = time.monotonic()
        self.metrics.batches.observe(len(batch))
        spoken: SimpleQueue[Spoken] = SimpleQueue()
        for part in self._divide(batch):
            self._pool.submit(_say_part, batch, part, spoken)
        ready: dict[int, Speech | Exception] = {}
        waiting = {job: [n for n, (own, _) in enumerate(batch) if own is job] for job, _ in batch}
        for _ in batch:
            number, said = spoken.get()
            ready[number] = said
            job = batch[number][0]
            while waiting[job] and waiting[job][0] in ready:
                self._hand_over(job, ready[waiting[job].pop(0)])
        seconds = time.monotonic() - began
        self.metrics.work.add(seconds)
        tokens = sum(len(line.tokens) for _, line in batch) or 1
        self._token_seconds += 0.2 * (seconds / tokens - self._token_seconds)
        for job in waiting:
            if not job.is_over:
                self._fetch(job)  # so that the last piece is known to be the last at once

    def _divide(self, batch: Sequence[tuple[Job, Line]]) -> list[list[int]]:
        """Numbers of lines, in as many parts as there are cores, which take about as long."""
        parts: list[list[int]] = [[] for _ in range(min(self._cores, len(batch)))]
        sizes = [len(line.tokens) for _, line in batch]
        for number in sorted(range(len(batch)), key=lambda number: -sizes[number]):
            min(parts, key=lambda part: sum(sizes[one] for one in part)).append(number)
        return [sorted(part) for part in parts if part]

    def _hand_over(self, job: Job, speech: Speech | Exception) -> None:
        if job.is_over:
            return
        if isinstance(speech, Exception):
            if not isinstance(speech, UserError):
                logger.error("a line could not be spoken", exc_info=speech)
            self._end(job, speech)
            return
        self.metrics.sentences.add()
        self.metrics.speech.add(speech.seconds)
        job.hand_over(speech)

    def _end(self, job: Job, error: Exception | None) -> None:
        with self._changed:
            self._jobs = [one for one in self._jobs if one is not job]
        if error is not None:
            self.metrics.failed.add()
        job.end(error)


def _say_part(
    batch: Sequence[tuple[Job, Line]], part: Sequence[int], spoken: SimpleQueue[Spoken]
) -> None:
    """Say some lines of a batch; one that fails does not take the others with it."""
    synthesizer = batch[part[0]][0].synthesizer
    done = 0
    try:
        for number, speech in zip(
            part, synthesizer.say([batch[number][1] for number in part]), strict=True
        ):
            spoken.put((number, speech))
            done += 1
    except Exception as error:  # whatever it is, somebody waits for an answer
        if len(part) == 1:
            spoken.put((part[0], error))
            return
        for number in part[done:]:
            _say_part(batch, [number], spoken)


def _fit(one: Job, other: Job) -> bool:
    """Whether lines of two jobs go into one batch: an opening does not wait for long lines."""
    return one.synthesizer is other.synthesizer and one.has_sounded == other.has_sounded
