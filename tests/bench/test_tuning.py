"""Tuning: choices from invented numbers, a real tuning in small, and runs that remember theirs."""

import os
import signal
from contextlib import nullcontext
from functools import partial

import pytest
import tensorflow as tf

from myxtts.bench import tuning
from myxtts.bench.room import Room
from myxtts.bench.tuning import (
    FILE,
    Tuning,
    settle_run,
    trial_length,
    tune,
    tune_loading,
)
from myxtts.bench.tuning_choices import (
    BUDGET,
    CALLS,
    DEPTH,
    READER,
    RESIDENCE,
    SIZE,
    WORKERS,
    Alternative,
    Choice,
    Circumstances,
    Loading,
    Throughput,
    candidates,
    choose_batch,
    choose_least,
    choose_reader,
    reason_to_stay,
)
from myxtts.config.config import XTTSConfig
from myxtts.config.io import load_config
from myxtts.data.batches.training_data import TrainingData
from myxtts.errors import UserError
from myxtts.training.loop import TrainingLoop
from myxtts.training.trainer import XTTSTrainer
from tests.helpers.runs import assert_equal_states, final_state, run_config

STORED = Circumstances(is_stored=True)


def loading(*stalls: float, cpu: float | tuple[float, ...] = 1.0) -> Loading:
    costs = cpu if isinstance(cpu, tuple) else (cpu,) * len(stalls)
    return Loading(stalls, (2.0,) * len(stalls), costs)


def reasons(choice: Choice) -> dict:
    return {other.value: other.why for other in choice.alternatives}


def test_the_smallest_batch_that_is_almost_the_fastest_is_chosen():
    rates = {4: 100.0, 8: 190.0, 16: 200.0, 32: 150.0}
    found = {size: Throughput((rate,)) for size, rate in rates.items()}
    choice = choose_batch(SIZE, found | {64: Throughput(failure="ran out of memory")})
    assert (choice.setting, choice.value, choice.measured) == (SIZE, 8, "190 frames/s")
    assert choice.why == "the smallest within 5 % of the fastest"
    assert choice.alternatives == (
        Alternative(4, "100 frames/s", "only 50 % of the fastest"),
        Alternative(16, "200 frames/s", "not 5 % faster than 8"),
        Alternative(32, "150 frames/s", "only 75 % of the fastest"),
        Alternative(64, "-", "ran out of memory"),
    )


def test_a_single_lucky_round_chooses_no_batch():
    found = {8: Throughput((100.0, 101.0, 99.0)), 16: Throughput((100.0, 400.0, 98.0))}
    assert choose_batch(SIZE, found).value == 8


def test_where_no_batch_fits_the_error_says_what_to_do():
    with pytest.raises(UserError, match="4: ran out of memory.*--max-mel-frames"):
        choose_batch(SIZE, {4: Throughput(failure="ran out of memory")})


def test_the_least_depth_within_noise_of_the_best_is_chosen():
    found = {
        1: loading(0.2, 0.21, 0.19),
        2: loading(0.004, 0.005, 0.006),
        4: loading(0.0, 0.0, 0.0),
        8: loading(0.001, 0.0, 0.0),
    }
    choice = choose_least(DEPTH, found)
    assert choice.value == 2
    assert reasons(choice) == {
        1: "the device waits longer",
        4: "gains nothing over 2",
        8: "gains nothing over 2",
    }
    assert choice.measured.startswith("the device waits 0.5 %; unused, a batch takes 2.0 ms")


def test_rounds_that_disagree_are_noise():
    assert choose_least(DEPTH, {1: loading(0.0, 0.3, 0.1), 8: loading(0.2, 0.0, 0.1)}).value == 1
    # All rounds agree, by however little above the least.
    assert choose_least(DEPTH, {1: loading(0.02, 0.02, 0.02), 8: loading(0, 0, 0)}).value == 8


def test_workers_count_where_the_device_waits_most_of_the_time():
    """From 97.5 % to 95 % is twice as fast."""
    assert choose_least(WORKERS, {1: loading(0.975), 2: loading(0.95)}).value == 2


def test_the_reader_is_the_one_for_which_the_device_waits_less_whatever_it_costs():
    found = {True: loading(0.3, cpu=1.0), False: loading(0.0, cpu=5.0)}
    choice = choose_reader(found, present=True)
    assert choice.value is False and choice.why == "the device waits less"
    assert reasons(choice) == {True: "the device waits longer"}
    assert choose_reader(found, present=False).value is False


def test_the_cheaper_reader_is_chosen_where_the_device_never_waits():
    found = {True: loading(0.0, cpu=3.0), False: loading(0.0, cpu=1.0)}
    choice = choose_reader(found, present=True)
    assert (choice.value, choice.why) == (False, "it costs less")
    assert reasons(choice) == {True: "it costs more"}
    assert choose_reader(found, present=False).value is False


@pytest.mark.parametrize("present", [True, False])
def test_a_reader_stays_where_none_is_better(present):
    found = {
        True: loading(0.0, 0.0, 0.0, cpu=(1.0, 2.0, 1.0)),
        False: loading(0.0, 0.0, 0.0, cpu=(1.1, 1.0, 1.3)),
    }
    choice = choose_reader(found, present)
    assert choice.value is present
    assert reasons(choice) == {not present: "no measurable difference"}


@pytest.mark.parametrize(
    ("setting", "settings", "seen", "word"),
    [
        (SIZE, {}, Circumstances(True, given={SIZE: "flag --batch-size"}), "flag --batch-size"),
        (SIZE, {"max_frames_per_batch": 9000}, STORED, "max_frames_per_batch decides"),
        (SIZE, {}, Circumstances(True, is_simulated=True), "simulated step"),
        (BUDGET, {}, STORED, "batch_size decides"),
        (READER, {}, Circumstances(is_stored=False), "computed, not read"),
        (READER, {"enable_memory_mapping": False}, STORED, "enable_memory_mapping"),
        (WORKERS, {}, STORED, "not used here: everything is stored"),
        (DEPTH, {"optimize_cpu_gpu_overlap": False}, STORED, "optimize_cpu_gpu_overlap is off"),
    ],
)
def test_what_has_no_effect_or_is_given_stays(setting, settings, seen, word):
    assert word in reason_to_stay(setting, XTTSConfig(**settings), seen)


@pytest.mark.parametrize(
    ("setting", "settings", "seen"),
    [
        (SIZE, {}, STORED),
        (BUDGET, {"max_frames_per_batch": 9000}, STORED),
        (READER, {"enable_memory_mapping": False, "memory_cache": True}, STORED),
        (WORKERS, {}, Circumstances(is_stored=False)),
        (DEPTH, {}, Circumstances(is_stored=False, is_simulated=True)),
    ],
)
def test_everything_else_is_measured(setting, settings, seen):
    assert reason_to_stay(setting, XTTSConfig(**settings), seen) == ""


def test_what_is_tried():
    config = XTTSConfig(batch_size=6, prefetch_buffer_size=3, max_frames_per_batch=1000)
    tried = partial(candidates, cores=6, utterances=20)
    assert tried(SIZE, config) == [3, 6, 12]  # 24 are more than there are
    assert tried(BUDGET, config) == [500, 1000, 2000, 4000]
    assert tried(DEPTH, config) == [1, 2, 3, 4, 8]
    assert tried(WORKERS, config) == [1, 2, 4, 6]
    assert tried(READER, config) == [False, True]
    assert tried(SIZE, XTTSConfig(batch_size=6, utterances_per_speaker=2)) == [2, 6, 12]
    assert tried(SIZE, XTTSConfig(batch_size=1)) == [1, 2, 4]
    assert tried(SIZE, XTTSConfig(batch_size=32)) == [16, 32]


def test_trials_are_short_but_not_too_short():
    assert trial_length(tuning.TRIAL_SECONDS / 10, 40) == 10
    assert trial_length(100.0, 40) == tuning.LEAST_STEPS
    assert trial_length(0.0, 40) == 40


def test_what_will_not_fit_on_a_host_is_not_tried():
    room = Room(is_host=True, free=lambda: 3e9)
    assert room.shortage(10**9) == ""  # nothing is known yet
    room.frame_bytes = 2e6
    assert room.shortage(1500) == ""
    assert room.shortage(2000) == "not tried: it takes about 4.0 GB, and 3.0 are free"
    on_device = Room(is_host=False, free=lambda: 0.0)
    on_device.frame_bytes = 2e6
    assert on_device.shortage(2000) == ""
    on_device.is_over = True
    assert on_device.shortage(1) == "not tried: a smaller one ran out of memory"


def test_a_step_s_memory_is_seen():
    room = Room(is_host=True)
    kept = []
    room.watch(100, lambda: kept.append(b"x" * 300_000_000))
    assert room.frame_bytes >= 2.5e6


def test_the_table_and_the_file(tmp_path):
    config = XTTSConfig(model_size="tiny", batch_size=16, use_tf_native_loading=False)
    found = Tuning(
        (
            Choice(SIZE, 16, "9 frames/s", "fast", (Alternative(8, "5 frames/s", "slow"),)),
            Choice(READER, False, "-", "left as it is"),
        ),
        config,
    )
    assert str(found).splitlines() == [
        "setting                     value   measured    why",
        "data.batch_size             16 *    9 frames/s  fast",
        "                            8       5 frames/s  slow",
        "data.use_tf_native_loading  host *  -           left as it is",
        "*: chosen",
    ]
    assert found[READER].value is False
    found.write(tmp_path / "t.yaml")
    assert load_config(tmp_path / "t.yaml") == config
    assert found.as_yaml() == (tmp_path / "t.yaml").read_text()
    assert "batch_size: 16" in found.as_yaml() and "n_mels" not in found.as_yaml()


CORPUS = {"count": 15, "speakers": 2, "seconds": (0.4, 0.8)}


@pytest.fixture(autouse=True)
def short_trials(monkeypatch):
    monkeypatch.setattr(tuning, "TRIAL_SECONDS", 0.01)


@pytest.fixture
def make_config(shared_corpus, tmp_path):
    return partial(run_config, shared_corpus, tmp_path / "run", preprocessing_mode="precompute")


@pytest.fixture
def little_memory(monkeypatch):
    """A device on which more than six utterances at once are too many."""
    take = tuning._Tuner._take

    def limited(self, batch):
        if len(batch["index"]) > 6:
            raise tf.errors.ResourceExhaustedError(None, None, "OOM")
        take(self, batch)

    monkeypatch.setattr(tuning._Tuner, "_take", limited)


def test_a_real_tuning_measures_chooses_and_loses_what_does_not_fit(
    make_config, little_memory, tmp_path, monkeypatch
):
    config, reported = make_config(batch_size=4, auto_tune=True), []
    bar = nullcontext(lambda *progress: reported.append(progress))
    monkeypatch.setattr(tuning, "progress", lambda title, unit: bar)
    found = tune(config, rounds=2, given={CALLS: "file x.yaml"})
    assert [choice.setting for choice in found.choices] == list(tuning.TUNED)
    size = found[SIZE]
    tried = {size.value, *(other.value for other in size.alternatives)}
    assert tried == {2, 4, 8} and size.value < 8
    assert size.alternatives[-1] == Alternative(8, "-", "ran out of memory")
    assert "frames/s" in size.measured
    assert len(found[READER].alternatives) == 1 and "CPU-ms" in found[READER].measured
    assert found[WORKERS].why == "not used here: everything is stored"
    assert {found[DEPTH].value, *reasons(found[DEPTH])} == {1, 2, 4, 8}
    assert found[RESIDENCE].why == "not used here: without a GPU auto is off"
    # The configuration is the given one with the choices, and does not tune itself again.
    chosen = {choice.setting: choice.value for choice in found.choices}
    assert found.config == config.replace(**chosen | {"training.auto_tune": False})
    assert config.training.auto_tune and not (tmp_path / "run").exists()
    counts = [done for done, _ in reported]
    assert counts == sorted(set(counts)) and reported[-1] == (21, 21)


def test_a_budget_of_frames_is_tuned_in_place_of_the_batch_size(make_config):
    config = make_config(max_frames_per_batch=120, optimize_cpu_gpu_overlap=False)
    found = tune(config, rounds=1, given=dict.fromkeys((READER, CALLS), "file x.yaml"))
    assert {found[BUDGET].value, *reasons(found[BUDGET])} == {60, 120, 240, 480}
    assert found[SIZE].value == 4 and "max_frames_per_batch decides" in found[SIZE].why
    assert found[READER].why == "left as it is: given by file x.yaml"
    assert found[READER].value is True


def test_where_everything_is_given_nothing_is_built_or_measured(make_config, monkeypatch):
    monkeypatch.setattr(XTTSTrainer, "build_step", never)
    config = make_config()
    found = tune(config, given=dict.fromkeys(tuning.TUNED, "file x.yaml"))
    assert found.config == config
    assert {choice.why for choice in found.choices} == {"left as it is: given by file x.yaml"}


def test_where_batches_are_computed_workers_are_tuned_and_nothing_is_stored(
    make_config, tmp_path, monkeypatch
):
    monkeypatch.setattr(tuning, "available_cores", lambda: 2)
    cache = tmp_path / "cache"
    config = make_config(preprocessing_mode="auto", cache_dir=str(cache))
    found = tune(config, simulate_ms=1.0, rounds=1)
    assert {found[WORKERS].value, *reasons(found[WORKERS])} == {1, 2}
    assert "computed, not read" in found[READER].why and "simulated" in found[SIZE].why
    assert not list(cache.rglob("*.mel"))
    assert not TrainingData(config).train.is_complete


def test_a_signal_ends_the_tuning(make_config, monkeypatch):
    take = TrainingLoop._step

    def step(self, *args):
        os.kill(os.getpid(), signal.SIGINT)
        take(self, *args)

    monkeypatch.setattr(TrainingLoop, "_step", step)
    with pytest.raises(KeyboardInterrupt, match="SIGINT"):
        tune(make_config(), simulate_ms=1.0, rounds=1)


def chosen(config: XTTSConfig, **settings) -> Tuning:
    """What a tuning that chose these settings would return."""
    values = {f"data.{name}": value for name, value in settings.items()}
    return Tuning((), config.replace(**values | {"training.auto_tune": False}))


def test_a_worker_tunes_how_it_loads_its_share(make_config, monkeypatch):
    config, seen = make_config(batch_size=6, auto_tune=True), []

    def measured(function, share, given):
        seen.append((share, given))
        choices = [
            Choice(READER, False, "", ""),
            Choice(WORKERS, 1, "", ""),
            Choice(DEPTH, 2, "", ""),
        ]
        return Tuning(tuple(choices), share)

    monkeypatch.setattr(tuning, "run_apart", measured)
    found = tune_loading(config, {DEPTH: "flag"}, workers=2)
    assert found == {READER: False, WORKERS: 1, DEPTH: 2}
    ((share, given),) = seen
    assert share.data.batch_size == 3 and not share.training.auto_tune
    assert set(given) == {SIZE, BUDGET, DEPTH, RESIDENCE, CALLS}


def never(config: XTTSConfig) -> Tuning:
    raise AssertionError("measured again")


def test_a_resumed_run_has_the_choices_and_the_bits_of_its_beginning(
    make_config, tmp_path, monkeypatch
):
    """Stopped after four of its steps, in the middle of an epoch."""
    config = make_config(max_steps=9, save_interval=100, auto_tune=True)

    def measured(config: XTTSConfig) -> Tuning:
        found = tune(config, rounds=1, given={CALLS: "flag"})
        return chosen(found.config, batch_size=3)

    begun = settle_run(config, None, {}, measured)
    assert load_config(tmp_path / "run" / FILE) == begun and begun.data.batch_size == 3
    take = TrainingLoop._step

    def step(self, *args):
        take(self, *args)
        if self.done == 4:
            os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(TrainingLoop, "_step", step)
        assert XTTSTrainer(begun).train() == "SIGTERM"
    again = settle_run(config, None, {}, never)
    assert again == begun
    assert XTTSTrainer(again).train() == "finished"
    elsewhere = begun.replace(checkpoint_dir=str(tmp_path / "in one go"))
    assert XTTSTrainer(elsewhere).train() == "finished"
    assert_equal_states(final_state(tmp_path / "run"), final_state(tmp_path / "in one go"))


@pytest.fixture
def earlier(make_config, tmp_path) -> XTTSConfig:
    """The configuration of a run that chose three utterances per batch, and has a checkpoint."""
    config = make_config(auto_tune=True)
    settle_run(config, None, {}, partial(chosen, batch_size=3, prefetch_buffer_size=1))
    (tmp_path / "run/checkpoints/step-00000004").mkdir(parents=True)
    return config


def test_what_is_given_now_wins_over_what_was_chosen_then(earlier):
    again = settle_run(earlier, True, {SIZE: "flag --batch-size"}, never)
    assert (again.data.batch_size, again.data.prefetch_buffer_size) == (4, 1)


def test_a_run_without_a_checkpoint_is_tuned_anew(make_config):
    config = make_config(auto_tune=True)
    for size in (3, 5):
        assert (
            settle_run(config, None, {}, partial(chosen, batch_size=size)).data.batch_size == size
        )


def test_a_run_that_starts_over_is_tuned_anew_and_sets_the_old_one_aside(earlier, tmp_path):
    settled = settle_run(earlier, False, {}, partial(chosen, batch_size=2))
    assert settled.data.batch_size == 2
    assert load_config(tmp_path / "run" / FILE).data.batch_size == 2
    assert load_config(tmp_path / "run.1" / FILE).data.batch_size == 3
    assert (tmp_path / "run.1/checkpoints").exists()
    assert not (tmp_path / "run/checkpoints").exists()


def test_a_run_from_another_one_s_checkpoint_takes_its_choices_along(earlier, tmp_path):
    state = tmp_path / "run/checkpoints/step-00000004"
    moved = earlier.replace(checkpoint_dir=str(tmp_path / "moved"))
    settled = settle_run(moved, state, {}, never)
    assert settled.data.batch_size == 3
    assert load_config(tmp_path / "moved" / FILE) == settled


def test_a_run_that_began_untuned_stays_so(make_config, tmp_path, caplog):
    caplog.set_level("INFO", "myxtts")
    (tmp_path / "run/checkpoints/step-00000004").mkdir(parents=True)
    config = make_config(auto_tune=True)
    assert settle_run(config, None, {}, never) == config
    assert "did not tune itself" in caplog.text
