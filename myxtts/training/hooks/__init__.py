"""What happens between training steps: logging, validation, evaluation, saving."""

from myxtts.training.hooks.evaluation import EvaluationHook
from myxtts.training.hooks.history import HistoryHook
from myxtts.training.hooks.log import LogHook
from myxtts.training.hooks.non_finite import NonFiniteHook
from myxtts.training.hooks.performance import PerformanceHook
from myxtts.training.hooks.progress import ProgressHook
from myxtts.training.hooks.samples import SampleHook
from myxtts.training.hooks.saving import SavingHook
from myxtts.training.hooks.tensorboard import TensorBoardHook
from myxtts.training.hooks.validation import ValidationHook
from myxtts.training.hooks.wandb import WandbHook
from myxtts.training.loop import Hook, Listener

__all__ = [
    "EvaluationHook",
    "HistoryHook",
    "Hook",
    "Listener",
    "LogHook",
    "NonFiniteHook",
    "PerformanceHook",
    "ProgressHook",
    "SampleHook",
    "SavingHook",
    "TensorBoardHook",
    "ValidationHook",
    "WandbHook",
]
