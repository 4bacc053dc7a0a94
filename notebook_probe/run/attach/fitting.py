"""Which quantities fit which places of a model, decided for all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping

from torch import nn

from notebook_probe.model.parameter_slots import weight_slots
from notebook_probe.model.selectors import standard_place
from notebook_probe.quantities import Quantity
from notebook_probe.quantities.reduce.reductions import parts
from notebook_probe.run.attach.request import lack_at
from notebook_probe.run.attach.requests import Fitting

__all__ = ["fitting"]

OF_CALL = "a single call takes no probe; attach it at its module"
_PARAMETER = "weight"
"""A place that is no module, and is taken for a parameter."""


def fitting(modules: Mapping[str, nn.Module], quantities: Iterable[Quantity]) -> Fitting:
    """Where each quantity can be measured.

    Modules are of one kind when nothing that a quantity may ask of them tells them from each
    other, so that one of each kind is asked: a model has thousands of modules and few kinds.

    Parameters
    ----------
    modules : mapping of str to nn.Module
        All of the model by path.
    """
    listed = list(quantities)
    misfits = {parts[one.part].misfit for each in listed for one in each.features if one.part}
    found: dict[Hashable, int] = {}
    first: list[str] = []
    kinds: dict[str, int] = {}
    for path, module in modules.items():
        key = _key(path, module, misfits)
        if key not in found:
            found[key] = 2 + len(first)
            first.append(path)
        kinds[standard_place(path)] = found[key]
    return Fitting(
        kinds,
        {
            one.name: [
                _reason(modules, _PARAMETER, one),
                OF_CALL,
                *(_reason(modules, path, one) for path in first),
            ]
            for one in listed
        },
    )


def _key(path: str, module: nn.Module, misfits: Iterable[Callable[[nn.Module], str]]) -> Hashable:
    has_own = bool(weight_slots(module))
    has_any = has_own or next(module.parameters(), None) is not None
    return (not path, type(module), has_own, has_any, *(misfit(module) for misfit in misfits))


def _reason(modules: Mapping[str, nn.Module], path: str, quantity: Quantity) -> str:
    """Why not, in words that hold for every place of this kind; empty where it fits."""
    lack = lack_at(modules, path, quantity)
    if lack is None:
        return ""
    if not lack.lack:
        return "is of the step as a whole; mark the root"
    kind = type(modules[path]).__name__ if path in modules else "it"
    return f"{lack.need}; {kind} {lack.lack}" if lack.need else f"{kind} {lack.lack}"
