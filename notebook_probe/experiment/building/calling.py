"""Call users' functions with the arguments that they accept, and models with what they name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn

from notebook_probe.model.unwrapped import unwrap
from notebook_probe.train.data.batch import moved

__all__ = ["Accepts", "accepted", "arguments", "call_model", "placed"]


class Accepts(NamedTuple):
    """Names of the arguments that a function takes by name, and whether it takes any other."""

    names: frozenset[str]
    any_other: bool


def accepted(function: Callable[..., Any], **offered: Any) -> dict[str, Any]:
    """Return those of the offered arguments that the function takes.

    Examples
    --------
    >>> accepted(lambda seed, width: None, seed=1, inputs=2)
    {'seed': 1}
    """
    takes = accepts(function)
    return {
        name: value for name, value in offered.items() if takes.any_other or name in takes.names
    }


def accepts(function: Callable[..., Any]) -> Accepts:
    """Return the arguments that a function takes by name; all if its signature is unreadable."""
    try:
        given = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        # Builtins and C extensions may have no readable signature.
        return Accepts(frozenset(), True)
    # Positional-only arguments are left out: they cannot be passed by name.
    by_name = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return Accepts(
        frozenset(one.name for one in given if one.kind in by_name),
        any(one.kind is one.VAR_KEYWORD for one in given),
    )


def placed(batch: Mapping[str, Any], device: torch.device | None) -> dict[str, Any]:
    """Return a batch with arrays as tensors, on the device."""
    tensors = {name: _tensor(value) for name, value in batch.items()}
    return tensors if device is None else moved(tensors, device)


def _tensor(value: Any) -> Any:
    # Kinds of numbers and bools; texts and objects have no tensor.
    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        return torch.from_numpy(value)
    return value


def arguments(
    model: nn.Module, batch: Mapping[str, Any], targets: tuple[str, ...] = ("labels",)
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments for a model: the values of a batch that its ``forward`` names.

    One that names none of them gets the only value that is no target; where there are several, the
    batch as it is.

    Examples
    --------
    >>> arguments(nn.Identity(), {"images": 1, "labels": 2})
    ((1,), {})
    >>> arguments(nn.Bilinear(1, 1, 1), {"input1": 1, "input2": 2, "labels": 3})
    ((), {'input1': 1, 'input2': 2})
    """
    kind: Any = type(unwrap(model))
    # The signature of a compiled or parallel wrapper is `*args, **kwargs`: look inside.
    takes = _takes(kind)
    named = {name: value for name, value in batch.items() if name in takes.names}
    if takes.any_other:
        named = {**named, **{name: one for name, one in batch.items() if name not in targets}}
    if named:
        return (), named
    others = [value for name, value in batch.items() if name not in targets]
    return (others[0] if len(others) == 1 else dict(batch),), {}


# Inspecting a signature for every batch would show in the step time of a small model.
@lru_cache(maxsize=64)
def _takes(kind: Any) -> Accepts:
    takes = accepts(kind.forward)
    return Accepts(takes.names - {"self"}, takes.any_other)


def call_model(
    model: nn.Module, batch: Mapping[str, Any], targets: tuple[str, ...] = ("labels",)
) -> Any:
    """Call the model on a batch, with `arguments`."""
    positional, named = arguments(model, batch, targets)
    return model(*positional, **named)
