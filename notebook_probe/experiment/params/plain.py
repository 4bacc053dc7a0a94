"""Parameters as a record can hold them: plain JSON, with functions told by where they come from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum
from functools import partial
from os import PathLike, fspath
from re import Pattern
from typing import Any

import numpy as np
import torch
from torch import Tensor

from notebook_probe.errors import ParamError
from notebook_probe.experiment.params.base import Given
from notebook_probe.experiment.params.functions import Origins

__all__ = ["plain"]


def plain(value: Any, where: str, origins: Origins) -> Any:
    """Return a value in JSON types.

    Numbers of numpy and of tensors are numbers, their arrays lists of lists; keys are text, and
    NaN and infinity are, too.

    Raises
    ------
    ParamError
        It cannot be stored; this is a TypeError.

    Examples
    --------
    >>> import numpy as np
    >>> plain({1: (np.float64(0.5), True), "max": math.inf}, "params", Origins())
    {'1': [0.5, True], 'max': 'inf'}
    >>> plain({"data": object()}, "params", Origins())  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    notebook_probe.errors.ParamError: params['data'] is object, which no record can hold; ...
    """
    if isinstance(value, Given):
        value = value.shown()
    if isinstance(value, Mapping):
        return {
            _key(key, where): plain(one, f"{where}[{key!r}]", origins) for key, one in value.items()
        }
    if isinstance(value, list | tuple):
        return [plain(one, f"{where}[{i}]", origins) for i, one in enumerate(value)]
    # An array of objects may hold anything, so it is not converted but refused below.
    if isinstance(value, np.ndarray | np.generic) and value.dtype != object:
        return plain(value.tolist(), where, origins)
    if isinstance(value, Tensor):
        return plain(value.detach().cpu().tolist(), where, origins)
    # JSON has neither NaN nor infinities.
    if isinstance(value, float) and not math.isfinite(value):
        return str(float(value))
    if value is None or type(value) in (bool, int, float, str):
        return value
    # Before the numbers: a member of an IntEnum is an int, too.
    if isinstance(value, Enum):
        return plain(value.value, where, origins)
    if isinstance(value, int | float | str):
        return plain(_builtin(value), where, origins)
    if isinstance(value, torch.device | torch.dtype):
        return str(value)
    if isinstance(value, PathLike):
        return fspath(value)
    if isinstance(value, Pattern):
        return value.pattern
    if isinstance(value, partial):
        return plain(origins.of_partial(value), where, origins)
    # A module is callable, but a name says nothing about its weights.
    if callable(value) and not isinstance(value, torch.nn.Module):
        return origins.of(value)
    raise ParamError(
        f"{where} is {type(value).__name__}, which no record can hold; allowed: text, numbers, "
        f"bools, None, arrays, lists and dicts of these, functions and classes"
    )


def _key(key: Any, where: str) -> str:
    if isinstance(key, str | int | float | bool) or key is None:
        return str(key)
    if isinstance(key, np.generic):
        return str(key.item())
    raise ParamError(f"{where} has the key {key!r}, which no record can hold")


def _builtin(value: int | float | str) -> Any:
    """Return the value of a subclass as its builtin type."""
    # No bool among them: it cannot be subclassed.
    kind = next(kind for kind in (int, float, str) if isinstance(value, kind))
    return kind(value)
