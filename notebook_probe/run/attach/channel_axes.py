"""Where the channels of a module's tensors are, as its user says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from notebook_probe.errors import NotApplicableError
from notebook_probe.model.selectors import select
from notebook_probe.quantities.reduce.samples import SAID
from notebook_probe.run.attach.request import modules_by_path

__all__ = ["read_axes", "say_axes"]


def read_axes(model: nn.Module, given: Mapping[Any, int]) -> dict[str, int]:
    """The axis of every module that a selection means, by its path.

    Raises
    ------
    UnknownNameError
        A selection that means nothing in the model.
    NotApplicableError
        A parameter: channels are those of a module's inputs and outputs.
    ValueError
        Anything but a whole number for an axis.

    Examples
    --------
    >>> read_axes(nn.Sequential(nn.GELU(), nn.Linear(2, 2)), {nn.GELU: -1})
    {'0': -1}
    """
    modules, axes = modules_by_path(model), dict[str, int]()
    for where, axis in given.items():
        if not isinstance(axis, int) or isinstance(axis, bool):
            raise ValueError(f"channel_axis: {where!r}: {axis!r}; an axis is 1, -1 or the like")
        for place in select(model, where):
            if place not in modules:
                raise NotApplicableError(
                    f"channel_axis: {place!r} is a parameter; channels are those of a module"
                )
            axes[place] = axis
    return axes


def say_axes(model: nn.Module, axes: Mapping[str, int]) -> None:
    """Have quantities look for channels there, and of the other modules where they usually are."""
    modules = modules_by_path(model)
    for module in modules.values():
        SAID.pop(module, None)
    for place, axis in axes.items():
        SAID[modules[place]] = axis
