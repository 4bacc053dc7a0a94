"""Fit between quantities and places of a model, decided for all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from torch import nn

from notebook_probe.model.map import ModelMap
from notebook_probe.model.selectors import standard_place
from notebook_probe.model.unwrapped import unwrapped
from notebook_probe.quantities import Quantity
from notebook_probe.quantities.reduce.reductions import parts
from notebook_probe.run.attach.bypassed import is_bypassed, is_never_fed
from notebook_probe.run.attach.request import misfit_at
from notebook_probe.run.attach.requests import Fitting

__all__ = ["fitting"]

OF_CALL = "a single call takes no probe; attach it at its module"
_PARAMETER = "weight"
"""A place that is no module, and is taken for a parameter."""


def fitting(model_map: ModelMap, quantities: Iterable[Quantity]) -> Fitting:
    """Return where each quantity can be measured.

    Modules are of one kind if no quantity can tell them apart, so one of each kind is checked: a
    model has thousands of modules and few kinds.
    """
    listed = list(quantities)
    misfits = {parts[one.part].misfit for each in listed for one in each.features if one.part}
    found: dict[Hashable, int] = {}
    first: list[str] = []
    kinds: dict[str, int] = {}
    for path, module in model_map.by_every_path.items():
        key = _key(path, unwrapped(module), model_map, misfits)
        if key not in found:
            # Kinds 0 and 1 are parameters and single calls.
            found[key] = 2 + len(first)
            first.append(path)
        kinds[standard_place(path)] = found[key]
    return Fitting(
        kinds,
        {
            one.name: [
                _reason(model_map, _PARAMETER, one),
                OF_CALL,
                *(_reason(model_map, path, one) for path in first),
            ]
            for one in listed
        },
    )


def _key(
    path: str, module: nn.Module, model_map: ModelMap, misfits: Iterable[Callable[[nn.Module], str]]
) -> Hashable:
    has_own, has_any = bool(model_map.slots(path)), model_map.has_parameters(path)
    # All that misfit_at may ask of a module: two modules that agree in it fit the same quantities.
    asked = (misfit(module) for misfit in misfits)
    kind = (not path, is_bypassed(model_map, path), type(module))
    return (*kind, has_own, has_any, *asked)


def _reason(model_map: ModelMap, path: str, quantity: Quantity) -> str:
    """Return the reason in words that apply to every place of this kind; empty if it fits."""
    if is_never_fed(model_map, path, quantity):
        return "is never called: nn.MultiheadAttention reads its weight itself"
    misfit = misfit_at(model_map, path, quantity)
    if misfit is None:
        return ""
    if not misfit.fault:
        return "is of the step as a whole; mark the root"
    module = unwrapped(model_map.by_every_path.get(path))
    kind = type(module).__name__ if module is not None else "it"
    return f"{misfit.need}; {kind} {misfit.fault}" if misfit.need else f"{kind} {misfit.fault}"
