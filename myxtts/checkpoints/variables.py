"""The variables of a model and its optimizer under names that are the same in every process."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from myxtts.checkpoints.files import CheckpointError

_SEED = "seed_generator_state"
_SHOWN = 5


def variables_of(model, optimizer) -> dict[str, Any]:
    """All that training changes: weights, random seeds and the optimizer's variables, by name.

    The optimizer must have been built, or it has no variables yet.
    """
    if not optimizer.built:
        raise ValueError("the optimizer is not built: call optimizer.build(trainable_variables)")
    named = [(f"model/{name}", variable) for name, variable in weights_of(model).items()]
    # Keras numbers seeds by how many the process has made before: their order in the model is
    # what stays.
    named += [(f"seeds/{number}", variable) for number, variable in enumerate(seeds_of(model))]
    named += [(_optimizer_name(model, optimizer, v), v) for v in optimizer.variables]
    return _unique(named)


def weights_of(model) -> dict[str, Any]:
    """The variables of a model by their layers' names, without the random seeds."""
    return _unique(
        (variable.path.removeprefix(f"{model.name}/"), variable)
        for variable in model.variables
        if not _is_seed(variable)
    )


def seeds_of(model) -> list[Any]:
    """The random seeds of a model's layers."""
    return [variable for variable in model.variables if _is_seed(variable)]


def restore(variables: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Give variables the values of the arrays of the same names: all of them, or none."""
    differences = misfit(variables, arrays)
    if differences:
        raise CheckpointError(
            f"the checkpoint does not fit the model and its optimizer: {differences}. Resume "
            "with the settings that it was made with, or start over with --reset-training"
        )
    assign(variables, arrays)


def assign(variables: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    for name, variable in variables.items():
        variable.assign(arrays[name])


def misfit(variables: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> str:
    """Say how arrays differ from the variables that they are for; nothing if they fit."""
    missing = [name for name in variables if name not in arrays]
    surplus = [name for name in arrays if name not in variables]
    other = [
        f"{name} (saved as {_form(arrays[name])}, here {_form(variable)})"
        for name, variable in variables.items()
        if name in arrays and _form(arrays[name]) != _form(variable)
    ]
    parts = {"missing": missing, "surplus": surplus, "of another shape or type": other}
    return "; ".join(f"{what}: {_some(names)}" for what, names in parts.items() if names)


def _is_seed(variable) -> bool:
    return variable.path.endswith(_SEED)


def _optimizer_name(model, optimizer, variable) -> str:
    """A name without those of the optimizer and the model, which Keras may number."""
    owner, _, name = variable.path.partition("/")
    inner = "" if owner == optimizer.name else "inner/"
    return f"optimizer/{inner}{name.removeprefix(f'{model.name}_')}"


def _unique(named: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """A dict in which the second of a name has a number."""
    result: dict[str, Any] = {}
    counts: dict[str, int] = {}
    for name, value in named:
        counts[name] = counts.get(name, 0) + 1
        result[name if counts[name] == 1 else f"{name}#{counts[name]}"] = value
    return result


def _form(value) -> str:
    dtype = value.dtype if isinstance(value.dtype, str) else value.dtype.name
    return f"{dtype}{list(value.shape)}"


def _some(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
