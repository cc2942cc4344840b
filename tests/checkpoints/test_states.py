"""Training states: exact, atomic, checked before use, and pruned without losing the best."""

import errno
import json
import os

import numpy as np
import pytest

from myxtts.checkpoints import (
    CheckpointError,
    abandon_after,
    best_state,
    latest_state,
    load_state,
    mark_best,
    prune,
    restore,
    save_state,
    saved_states,
    variables_of,
)

ARRAYS = {"model/w": np.arange(6, dtype=np.float32).reshape(2, 3), "optimizer/n": np.int64(7)}


def make_training(seed: int, scaled: bool = False):
    """A tiny model with dropout, and an optimizer with all the state that training uses."""
    import keras

    keras.utils.set_random_seed(seed)
    layers = [
        keras.Input((4,)),
        keras.layers.Dense(5, activation="relu", name="first"),
        keras.layers.Dropout(0.5, name="drop"),
        keras.layers.BatchNormalization(name="norm"),
        keras.layers.Dropout(0.2, name="drop_again"),
        keras.layers.Dense(1, name="last"),
    ]
    model = keras.Sequential(layers)
    optimizer = keras.optimizers.Adam(
        0.01, use_ema=True, ema_momentum=0.9, gradient_accumulation_steps=2
    )
    if scaled:
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, dynamic_growth_steps=2)
    optimizer.build(model.trainable_variables)
    return model, optimizer


def train(model, optimizer, steps) -> None:
    import tensorflow as tf

    for step in steps:
        x = np.random.default_rng(step).normal(size=(8, 4)).astype(np.float32)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - x[:, :1]) ** 2)
            if hasattr(optimizer, "inner_optimizer"):
                loss = optimizer.scale_loss(loss)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))


def values(model, optimizer) -> dict[str, np.ndarray]:
    return {name: np.copy(np.asarray(v)) for name, v in variables_of(model, optimizer).items()}


def assert_same(one: dict, other: dict) -> None:
    assert one.keys() == other.keys()
    for name in one:
        assert one[name].dtype == other[name].dtype and one[name].shape == other[name].shape
        assert one[name].tobytes() == other[name].tobytes(), name


def flip_a_byte(path) -> None:
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)


def numbers(paths) -> list[int]:
    return [int(path.name.removeprefix("step-")) for path in paths]


@pytest.mark.parametrize("scaled", [False, True])
def test_every_kind_of_variable_has_a_name(scaled):
    model, optimizer = make_training(0, scaled)
    named = variables_of(model, optimizer)
    assert len(named) == len(model.variables) + len(optimizer.variables)
    assert {id(v) for v in named.values()} == {id(v) for v in model.variables} | {
        id(v) for v in optimizer.variables
    }
    inner = "inner/" if scaled else ""
    assert {
        "model/first/kernel",
        "model/norm/moving_mean",
        "seeds/0",
        "seeds/1",
        f"optimizer/{inner}iteration",
        f"optimizer/{inner}first_kernel_average",
        f"optimizer/{inner}first_kernel_gradient_accumulator",
        f"optimizer/{inner}first_kernel_velocity",
    } <= named.keys()
    assert ("optimizer/dynamic_scale" in named) == scaled
    # Another model of the same process has the same names, although Keras numbers its own.
    assert list(variables_of(*make_training(1, scaled))) == list(named)


def test_two_layers_of_one_name_keep_apart():
    import keras

    class Pair(keras.Model):
        def __init__(self):
            super().__init__(name="pair")
            self.one, self.two = (keras.layers.Dense(1, name="same") for _ in range(2))

        def build(self, shape):
            self.one.build(shape)
            self.two.build(shape)

    model = Pair()
    model.build((None, 3))
    optimizer = keras.optimizers.SGD(momentum=0.9)
    optimizer.build(model.trainable_variables)
    named = variables_of(model, optimizer)
    assert named["model/same/kernel"] is model.one.kernel
    assert named["model/same/kernel#2"] is model.two.kernel
    assert "optimizer/same_kernel_momentum#2" in named


@pytest.mark.parametrize("scaled", [False, True])
def test_going_on_from_a_state_equals_never_having_stopped(tmp_path, scaled):
    straight = make_training(0, scaled)
    train(*straight, range(3))  # ends between two updates: the accumulators are not empty
    path = save_state(tmp_path, 3, variables_of(*straight), {"epoch": 1})
    saved = values(*straight)
    train(*straight, range(3, 8))

    resumed = make_training(99, scaled)
    state = latest_state(tmp_path)
    assert (state.step, state.facts, state.path) == (3, {"epoch": 1}, path)
    assert_same(state.arrays, saved)
    restore(variables_of(*resumed), state.arrays)
    train(*resumed, range(3, 8))
    assert_same(values(*resumed), values(*straight))


def test_the_layout_is_as_documented(tmp_path):
    from safetensors import safe_open

    path = save_state(tmp_path, 120, ARRAYS | {"empty": np.zeros((0, 2), np.float32)}, {"a": [1]})
    assert path == tmp_path / "step-00000120"
    assert sorted(file.name for file in path.iterdir()) == ["state.json", "state.safetensors"]
    record = json.loads((path / "state.json").read_text())
    assert record["format"] == 1 and record["step"] == 120 and record["facts"] == {"a": [1]}
    assert record["size"] == (path / "state.safetensors").stat().st_size
    with safe_open(path / "state.safetensors", "numpy") as file:
        np.testing.assert_array_equal(file.get_tensor("model/w"), ARRAYS["model/w"])
        assert file.get_tensor("optimizer/n").shape == ()
        assert file.get_tensor("empty").shape == (0, 2)


def test_arrays_are_saved_in_their_logical_order(tmp_path):
    turned = np.arange(6, dtype=np.float32).reshape(2, 3).T
    state = load_state(save_state(tmp_path, 1, {"w": turned}, {}))
    np.testing.assert_array_equal(state.arrays["w"], [[0, 3], [1, 4], [2, 5]])


def test_states_come_in_the_order_of_their_steps(tmp_path):
    assert saved_states(tmp_path / "nowhere") == [] and latest_state(tmp_path) is None
    for step in (200, 9, 123_456_789, 100):
        save_state(tmp_path, step, ARRAYS, {})
    (tmp_path / "step-later").mkdir()
    assert numbers(saved_states(tmp_path)) == [9, 100, 200, 123_456_789]
    assert latest_state(tmp_path).step == 123_456_789


def test_a_flipped_byte_falls_back_to_the_state_before(tmp_path, caplog):
    save_state(tmp_path, 10, ARRAYS, {"is": "whole"})
    damaged = save_state(tmp_path, 20, ARRAYS, {})
    flip_a_byte(damaged / "state.safetensors")
    assert latest_state(tmp_path).facts == {"is": "whole"}
    assert str(damaged) in caplog.text
    with pytest.raises(CheckpointError, match="sha256"):
        load_state(damaged)


@pytest.mark.parametrize("name", ["state.safetensors", "state.json"])
@pytest.mark.parametrize("keep", [None, 40])
def test_missing_and_shortened_files_are_noticed(tmp_path, name, keep):
    save_state(tmp_path, 10, ARRAYS, {})
    file = save_state(tmp_path, 20, ARRAYS, {}) / name
    content = file.read_bytes()
    file.unlink()
    if keep:
        file.write_bytes(content[:keep])
    with pytest.raises(CheckpointError, match=name):
        load_state(file.parent)
    assert latest_state(tmp_path).step == 10


def test_a_changed_fact_is_noticed(tmp_path):
    path = save_state(tmp_path, 10, ARRAYS, {"epoch": 3})
    text = (path / "state.json").read_text()
    (path / "state.json").write_text(text.replace('"epoch": 3', '"epoch": 2'))
    with pytest.raises(CheckpointError, match="state.json is damaged"):
        load_state(path)


def test_when_no_state_is_whole_nothing_starts_over_by_itself(tmp_path):
    for step in (10, 20):
        flip_a_byte(save_state(tmp_path, step, ARRAYS, {}) / "state.safetensors")
    with pytest.raises(CheckpointError, match="none of the 2 .*--reset-training"):
        latest_state(tmp_path)


def test_a_state_of_the_future_is_rejectd_and_not_passed_over(tmp_path):
    save_state(tmp_path, 10, ARRAYS, {})
    path = save_state(tmp_path, 20, ARRAYS, {}) / "state.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": 2}))
    with pytest.raises(CheckpointError, match="format 2"):
        latest_state(tmp_path)


def test_what_a_kill_leaves_behind_is_ignored_and_then_removed(tmp_path):
    save_state(tmp_path, 10, ARRAYS, {})
    leftover = tmp_path / ".step-00000020.tmp"
    leftover.mkdir()
    (leftover / "state.safetensors").write_bytes(b"half")
    assert latest_state(tmp_path).step == 10
    save_state(tmp_path, 30, ARRAYS, {})
    assert sorted(os.listdir(tmp_path)) == ["step-00000010", "step-00000030"]


def test_a_step_can_be_saved_again(tmp_path):
    flip_a_byte(save_state(tmp_path, 10, ARRAYS, {"take": 1}) / "state.safetensors")
    save_state(tmp_path, 10, ARRAYS, {"take": 2})
    assert latest_state(tmp_path).facts == {"take": 2}
    assert os.listdir(tmp_path) == ["step-00000010"]


def test_a_kill_between_the_two_renames_loses_nothing(tmp_path, monkeypatch):
    save_state(tmp_path, 10, ARRAYS, {"take": 1})
    rename, calls = os.rename, []

    def die_at_the_second(source, target):
        calls.append(target)
        if len(calls) == 2:
            raise KeyboardInterrupt
        rename(source, target)

    monkeypatch.setattr(os, "rename", die_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        save_state(tmp_path, 10, ARRAYS, {"take": 2})
    monkeypatch.undo()
    assert latest_state(tmp_path).facts == {"take": 1}
    mark_best(tmp_path, 10, "loss", 1.0)
    save_state(tmp_path, 20, ARRAYS, {})
    assert prune(tmp_path, 1) == [] and best_state(tmp_path).step == 10
    save_state(tmp_path, 10, ARRAYS, {"take": 3})
    assert numbers(saved_states(tmp_path)) == [10, 20]
    assert load_state(best_state(tmp_path).path).facts == {"take": 3}


def test_a_full_disk_is_explained_and_leaves_earlier_states_alone(tmp_path, monkeypatch):
    save_state(tmp_path, 10, ARRAYS, {})

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError, match="no space left .*step-00000020.*untouched"):
        save_state(tmp_path, 20, ARRAYS, {})
    assert os.listdir(tmp_path) == ["step-00000010"] and latest_state(tmp_path).step == 10
    with pytest.raises(CheckpointError, match="no space left"):
        mark_best(tmp_path, 10, "loss", 1.0)
    assert os.listdir(tmp_path) == ["step-00000010"]


def test_a_folder_that_cannot_be_is_explained(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(CheckpointError, match="cannot write .*file"):
        save_state(tmp_path / "file", 1, ARRAYS, {})


def test_facts_that_json_cannot_hold_leave_nothing_behind(tmp_path):
    with pytest.raises(TypeError):
        save_state(tmp_path, 1, ARRAYS, {"x": object()})
    assert os.listdir(tmp_path) == []


def test_bfloat16_is_rejectd_by_name(tmp_path):
    import ml_dtypes

    with pytest.raises(CheckpointError, match="model/w is of type bfloat16"):
        save_state(tmp_path, 1, {"model/w": np.ones(2, ml_dtypes.bfloat16)}, {})
    assert os.listdir(tmp_path) == []


def test_restore_names_everything_that_does_not_fit_and_changes_nothing():
    model, optimizer = make_training(0)
    before = values(model, optimizer)
    arrays = dict(before)
    del arrays["model/last/bias"]
    arrays["model/more"] = np.zeros(1, np.float32)
    arrays["model/first/kernel"] = np.zeros((4, 6), np.float32)
    arrays["seeds/0"] = arrays["seeds/0"].astype(np.int32)
    with pytest.raises(CheckpointError) as caught:
        restore(variables_of(model, optimizer), arrays)
    message = str(caught.value)
    assert "missing: model/last/bias;" in message
    assert "surplus: model/more;" in message
    assert "model/first/kernel (saved as float32[4, 6], here float32[4, 5])" in message
    assert "seeds/0 (saved as int32[2], here int64[2])" in message
    assert_same(values(model, optimizer), before)


def test_an_unbuilt_optimizer_is_noticed():
    import keras

    model, _ = make_training(0)
    with pytest.raises(ValueError, match="not built"):
        variables_of(model, keras.optimizers.Adam())


def test_pruning_keeps_the_last_the_best_and_the_protected(tmp_path):
    paths = {step: save_state(tmp_path, step, ARRAYS, {}) for step in range(10, 70, 10)}
    assert best_state(tmp_path) is None
    mark_best(tmp_path, 30, "validation mel_loss", 0.5)
    mark_best(tmp_path, 20, "validation mel_loss", 0.25)
    best = best_state(tmp_path)
    assert (best.step, best.metric, best.value) == (20, "validation mel_loss", 0.25)
    assert best.path == paths[20]
    assert prune(tmp_path, 2, protect={paths[10]}) == [paths[30], paths[40]]
    assert sorted(os.listdir(tmp_path)) == ["best.json", *(paths[s].name for s in (10, 20, 50, 60))]
    assert prune(tmp_path, 10) == []


def test_a_best_that_is_not_there_is_no_best(tmp_path, caplog):
    with pytest.raises(CheckpointError, match="no checkpoint of step 5"):
        mark_best(tmp_path, 5, "loss", 1.0)
    path = save_state(tmp_path, 5, ARRAYS, {})
    mark_best(tmp_path, 5, "loss", 1.0)
    path.rename(tmp_path / "moved")
    assert best_state(tmp_path) is None and "step 5" in caplog.text
    (tmp_path / "best.json").write_text('{"step": "x"}')
    with pytest.raises(CheckpointError, match="best.json is damaged: remove it"):
        best_state(tmp_path)


def test_a_changed_mark_of_the_best_is_damaged_and_one_without_checksum_opens(tmp_path):
    save_state(tmp_path, 5, ARRAYS, {})
    mark_best(tmp_path, 5, "loss", 1.25)
    mark = tmp_path / "best.json"
    whole = mark.read_text()
    for old, new in (("1.25", "1.75"), ("loss", "less"), ('"check"', '"chuck"')):
        mark.write_text(whole.replace(old, new))
        with pytest.raises(CheckpointError, match="best.json is damaged: remove it"):
            best_state(tmp_path)
    mark.write_text('{"step": 5, "metric": "loss", "value": 1.25}')  # as the version before did
    assert best_state(tmp_path).value == 1.25


def test_a_mark_of_another_run_is_damaged_and_saving_a_step_again_keeps_its_mark(tmp_path):
    other = tmp_path / "other"
    for folder, weight in ((tmp_path, 1.0), (other, 2.0)):
        save_state(folder, 5, {"weight": np.array([weight])}, {})
        mark_best(folder, 5, "loss", weight)
    save_state(tmp_path, 5, {"weight": np.array([1.0])}, {"known": "more"})
    assert best_state(tmp_path).value == 1.0
    (tmp_path / "best.json").write_bytes((other / "best.json").read_bytes())
    with pytest.raises(CheckpointError, match="best.json is not of this run, or of another state"):
        best_state(tmp_path)


def test_states_after_the_one_to_resume_from_are_moved_away(tmp_path):
    states = tmp_path / "checkpoints"
    for step in (20, 30, 40):
        save_state(states, step, {"a": np.array([step], np.float32)}, {})
    (states / "step-00000030").rename(states / ".step-00000030.old")  # as a kill may leave it
    moved = abandon_after(states, 20)
    assert [path.name for path in moved] == ["step-00000030", "step-00000040"]
    assert latest_state(states).step == 20
    assert load_state(tmp_path / "abandoned" / "step-00000040").arrays["a"].tolist() == [40]
    assert abandon_after(states, 20) == []
