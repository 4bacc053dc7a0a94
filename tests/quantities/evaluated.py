"""A quantity's value of one tensor, without a model or a run."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor, nn

from notebook_probe.errors import UnreadableError
from notebook_probe.quantities import Quantity, quantities
from notebook_probe.quantities.reduce.features import CALL, PARAMETER, Feature
from notebook_probe.quantities.reduce.reductions import measuring

OF_TENSORS = {*CALL, *PARAMETER, "module"} - {"attention"}


def of_tensors() -> dict[str, Quantity]:
    """Every registered quantity that is made of a module's or a parameter's tensors alone."""
    ours = [q for q in quantities.values() if q.function.__module__.startswith("notebook_probe.")]
    return {q.name: q for q in ours if set(q.needs) <= OF_TENSORS}


def evaluate(quantity: Quantity, *tensors: Tensor, module: nn.Module | None = None) -> Any:
    """Its value where each of ``tensors`` was one call, or one step of a quantity of several.

    Every tensor that it needs is taken to be the same one. None where there is nothing to tell.
    """
    try:
        of_steps = _of_steps if quantity.is_window else _of_calls
        returned = of_steps(quantity, tensors, module)
    except UnreadableError:
        return None
    return None if returned is None else np.asarray(quantity.value_of(returned), np.float64)


def _of_calls(quantity: Quantity, tensors: tuple[Tensor, ...], module: nn.Module | None) -> Any:
    return quantity.function(*[_pooled(one, tensors, module) for one in quantity.features])


def _of_steps(quantity: Quantity, tensors: tuple[Tensor, ...], module: nn.Module | None) -> Any:
    window = quantity.function()
    window.reset()
    for i, tensor in enumerate(tensors):
        if i and quantity.samples == "due":
            window.reset()
        window.update(*[_pooled(one, (tensor,), module) for one in quantity.features])
    return window.compute()


def _pooled(feature: Feature, tensors: tuple[Tensor, ...], module: nn.Module | None) -> Any:
    if feature.tensor == "module":
        return module
    if not feature.part:
        return tensors[-1]
    measure = measuring(feature.part).measure
    states = [measure(tensor, module, frozenset({feature.part})) for tensor in tensors]
    state = states[0]
    for other in states[1:]:
        state = state.merge(other)
    return (state,) if feature.each else state


def computed(name: str, *calls: tuple[Tensor, ...]) -> Any:
    """Value of a quantity of several steps after these updates; None where there is none."""
    window = quantities[name]()
    window.reset()
    for tensors in calls:
        window.update(*tensors)
    value = window.compute()
    return None if value is None else value.numpy()
