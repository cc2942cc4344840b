"""Loss weights and components in the log."""

from myxtts.training.hooks.log import LogHook
from tests.helpers.step_records import record


def test_the_weights_are_logged_once_at_the_start(messages):
    hook = LogHook({"duration_loss": 0.3, "stop_loss": 0.2, "mel_loss": 1.0})
    hook.start(0)
    hook.after_step(record(1))
    assert messages() == ["Loss weights: mel_loss=1, stop_loss=0.2, duration_loss=0.3"]


def test_an_epoch_ends_with_its_mean_losses_raw_and_weighted(messages):
    hook = LogHook({})
    for step, mel, stop in ((1, 1.0, 0.5), (2, 2.0, 0.25)):
        terms = {"voice_similarity_loss": 0.5, "stop_loss": stop, "mel_loss": mel}
        weighted = {"weighted/stop_loss": 2 * stop, "weighted/mel_loss": mel}
        hook.after_step(
            record(step, {"loss": mel + 2 * stop, **terms, **weighted, "learning_rate": 1e-3})
        )
    hook.after_epoch(0, 2)
    assert messages() == [
        "Train loss components: mel_loss=1.5, stop_loss=0.375, voice_similarity_loss=0.5",
        "Train loss components, weighted: mel_loss=1.5, stop_loss=0.75, loss=2.25",
    ]


def test_the_means_of_an_epoch_forget_the_one_before_and_skip_what_a_step_lacks(messages):
    hook = LogHook({})
    hook.after_step(record(1, {"mel_loss": 8.0}))
    hook.after_epoch(0, 1)
    hook.after_step(record(2, {"mel_loss": 2.0}))
    hook.after_step(record(3, {"mel_loss": 4.0, "pitch_loss": 6.0}))
    hook.after_epoch(1, 3)
    assert messages()[1] == "Train loss components: mel_loss=3, pitch_loss=6"


def test_an_epoch_without_steps_logs_nothing(messages):
    LogHook({}).after_epoch(0, 0)
    assert messages() == []
