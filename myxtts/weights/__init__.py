"""Weights that others have published: read without torch, checked, and fetched by name."""

from myxtts.weights.error import WeightsError
from myxtts.weights.fit import check_fit
from myxtts.weights.public import (
    FOLDER_VARIABLE,
    PUBLIC,
    PublicWeights,
    default_folder,
    find_weights,
    get_weights,
    is_present,
)
from myxtts.weights.torch_files import read_checkpoint, tensors_inside

__all__ = [
    "FOLDER_VARIABLE",
    "PUBLIC",
    "PublicWeights",
    "WeightsError",
    "check_fit",
    "default_folder",
    "find_weights",
    "get_weights",
    "is_present",
    "read_checkpoint",
    "tensors_inside",
]
