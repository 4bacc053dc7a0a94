"""One setting of an object as a short plain value."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import PurePath
from types import (
    BuiltinFunctionType,
    FunctionType,
    GenericAlias,
    MethodDescriptorType,
    MethodType,
)
from typing import Any

import numpy as np
import torch
from torch import Tensor

from notebook_probe.json_numbers import json_value

__all__ = ["FUNCTIONS", "class_name", "setting", "shortened"]

LONGEST = 200
"""Characters of a text."""
MOST_ITEMS = 16
"""Maximum items of a stored list or dict; for longer ones the length is stored."""
DEEPEST = 3
GREATEST = 2**53
"""Greatest whole number that every reader of JSON keeps exactly."""
HIDDEN = "(hidden)"

FUNCTIONS = (FunctionType, BuiltinFunctionType, MethodType, MethodDescriptorType)

_SECRET = re.compile(
    r"(^|_)(password|passwd|secret|secrets|credentials?|api_?key|access_key|private_key)($|_)"
    r"|^token$|(auth|access|api|hf|bearer|session|refresh)_token$",
    re.IGNORECASE,
)
_LOGIN = re.compile(r"(?<=://)[^/@\s]+@")


def setting(name: str, value: Any, depth: int = 0) -> Any:
    """Return text, a finite number, a bool, None, or a short list or dict of these.

    Examples
    --------
    >>> setting("mean", (0.5, float("nan"))), setting("collate_fn", print)
    ([0.5, 'nan'], 'print')
    >>> setting("samples", range(9)), setting("data", torch.zeros(2, 3)), setting("api_key", "k")
    ('range(0, 9)', 'float32 tensor (2, 3)', '(hidden)')
    """
    if _SECRET.search(name):
        return HIDDEN
    kind = type(value)
    for kinds, told in _TOLD:
        if issubclass(kind, kinds):
            return told(value)
    if kind in (list, tuple, set, frozenset):
        items = [*value] if len(value) <= MOST_ITEMS and depth < DEEPEST else None
        return _counted(value) if items is None else [setting("", one, depth + 1) for one in items]
    if issubclass(kind, dict):
        if kind is not dict or len(value) > MOST_ITEMS or depth >= DEEPEST:
            return _counted(value)
        return _of_dict(value, depth)
    return class_name(value)


def class_name(value: object) -> str:
    """Return the name of the class, even if the object pretends otherwise."""
    return shortened(type.__getattribute__(type(value), "__qualname__").split("<locals>.")[-1])


def shortened(text: str) -> str:
    """Return the text, or its beginning; without the user and password of an address."""
    # Cut first: a text may have millions of characters.
    start = _LOGIN.sub("", str.__str__(text)[: 2 * LONGEST])
    return start if len(start) <= LONGEST else f"{start[:LONGEST]}…"


def _of_dict(value: Mapping[Any, Any], depth: int) -> Any:
    pairs = [(key if type(key) is str else setting("", key), one) for key, one in value.items()]
    return {shortened(str(key)): setting(str(key), one, depth + 1) for key, one in pairs}


def _counted(value: Any) -> str:
    return f"{class_name(value)} of {len(value)}"


def _of_number(value: Any) -> Any:
    return json_value(float(value))


def _of_whole(value: Any) -> Any:
    whole = int(value)
    return whole if abs(whole) <= GREATEST else f"about 2**{whole.bit_length() - 1}"


def _of_function(value: Any) -> str:
    return shortened(str(value.__qualname__).split("<locals>.")[-1])


def _of_partial(value: Any) -> str:
    given = [setting("", one) for one in value.args[:MOST_ITEMS]]
    named = {key: setting(key, one) for key, one in [*value.keywords.items()][:MOST_ITEMS]}
    told = [str(setting("", value.func)), *map(repr, given)]
    return shortened(f"partial({', '.join([*told, *(f'{k}={v!r}' for k, v in named.items())])})")


def _of_tensor(value: Any) -> str:
    return f"{str(value.dtype).removeprefix('torch.')} tensor {tuple(value.shape)}"


def _of_array(value: Any) -> str:
    # The descriptors of ndarray itself: a subclass may define its own properties.
    return shortened(f"{np.ndarray.dtype.__get__(value)} array {np.ndarray.shape.__get__(value)}")


_TOLD: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    ((type(None), bool), lambda value: value),
    (enum.Enum, lambda value: shortened(f"{class_name(value)}.{value.name}")),
    ((int, np.integer), _of_whole),
    ((float, np.floating), _of_number),
    (np.bool_, bool),
    (str, shortened),
    (bytes, lambda value: f"{len(value)} bytes"),
    (FUNCTIONS, _of_function),
    (partial, _of_partial),
    (Tensor, _of_tensor),
    (np.ndarray, _of_array),
    (PurePath, lambda value: shortened(str(value))),
    ((torch.dtype, torch.device, range, slice, GenericAlias), lambda value: shortened(str(value))),
    (type, lambda value: shortened(type.__getattribute__(value, "__qualname__"))),
)
"""Conversion of each kind of value; the first that fits counts."""
