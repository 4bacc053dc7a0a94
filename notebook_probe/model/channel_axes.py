"""Channel axes of modules, as their user sets them.

Stored for each module, weakly, and not passed on: a quantity gets only a module and its tensors,
also a user's own quantity, and a further argument would be passed at every call of every module for
the few that have a setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from torch import nn

from notebook_probe.checks import is_whole
from notebook_probe.errors import NotApplicableError
from notebook_probe.model.map import ModelMap
from notebook_probe.model.selectors import select
from notebook_probe.model.unwrapped import unwrapped

__all__ = ["channel_axis_of", "resolve_channel_axes", "set_channel_axes"]

_axes: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()


def channel_axis_of(module: nn.Module) -> int | None:
    """Return the axis of a module's channels, None if it was not set."""
    return _axes.get(unwrapped(module))


def resolve_channel_axes(model_map: ModelMap, given: Mapping[Any, int]) -> dict[str, int]:
    """Return the axis of every module that a selection means, by its path.

    Raises
    ------
    UnknownNameError
        A selection that means nothing in the model.
    NotApplicableError
        A parameter: channels belong to a module's inputs and outputs.
    ValueError
        Anything but a mapping, and anything but a whole number for an axis.

    Examples
    --------
    >>> model = nn.Sequential(nn.GELU(), nn.Linear(2, 2))
    >>> resolve_channel_axes(ModelMap(model), {nn.GELU: -1})
    {'0': -1}
    """
    if not isinstance(given, Mapping):
        raise ValueError(
            f"channel_axis={given!r}; axes by selections of modules, such as {{'stages.*.act': -1}}"
        )
    axes: dict[str, int] = {}
    for where, axis in given.items():
        if not is_whole(axis):
            raise ValueError(f"channel_axis: {where!r}: {axis!r}; an axis is 1, -1 or the like")
        for place in select(model_map, where):
            if place not in model_map.modules:
                raise NotApplicableError(
                    f"channel_axis: {place!r} is a parameter; channels are those of a module"
                )
            axes[place] = axis
    return axes


def set_channel_axes(model_map: ModelMap, axes: Mapping[str, int]) -> None:
    """Set the axes of channels; other modules keep the usual ones."""
    for module in model_map.modules.values():
        _axes.pop(module, None)
    for place, axis in axes.items():
        _axes[model_map.modules[place]] = axis
