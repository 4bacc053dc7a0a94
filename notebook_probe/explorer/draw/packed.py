"""Values for an ES module: JSON, with the arrays as binary buffers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from notebook_probe.errors import ViewError
from notebook_probe.explorer.messages.frames import ArrayPlace
from notebook_probe.json_numbers import json_number

__all__ = ["packed"]

SENT_AS = {"bool": "uint8", "float16": "float32", "int64": "float64", "uint64": "float64"}
"""Types that JavaScript has no numbers for: 64-bit integers are bigints there."""


def packed(values: Mapping[Any, Any]) -> tuple[Any, list[ArrayPlace], list[memoryview]]:
    """Return the values without their arrays, the arrays' paths, and their numbers.

    Examples
    --------
    >>> packed({"n": 2, "y": np.zeros(3, np.float32)})[:2]
    ({'n': 2, 'y': None}, [{'path': ['y'], 'dtype': 'float32', 'shape': [3]}])

    Raises
    ------
    ViewError
        A value is neither an array nor JSON.
    """
    places: list[ArrayPlace] = []
    buffers: list[memoryview] = []

    def walk(value: Any, path: list[str | int]) -> Any:
        match value:
            case np.ndarray() if value.ndim:
                array = _sendable(value, path)
                places.append({"path": path, "dtype": str(array.dtype), "shape": [*array.shape]})
                buffers.append(memoryview(array.tobytes()))
                return None
            case np.ndarray() | np.generic():
                return walk(value.item(), path)
            case float():
                return json_number(value)
            case None | bool() | int() | str():
                return value
            case Mapping():
                return {_key(key, path): walk(one, [*path, key]) for key, one in value.items()}
            case list() | tuple():
                return [walk(one, [*path, place]) for place, one in enumerate(value)]
        raise ViewError(f"{_where(path)} is {type(value).__name__} {value!r:.60}; {ALLOWED}")

    return walk(values, []), places, buffers


ALLOWED = "numbers, texts, lists, dicts and numpy arrays of numbers can be sent"


# Typed arrays have the byte order of the machine, which is little-endian nearly everywhere.
def _sendable(array: npt.NDArray[Any], path: list[str | int]) -> npt.NDArray[Any]:
    dtype = np.dtype(SENT_AS.get(array.dtype.name, array.dtype)).newbyteorder("<")
    # numpy's longdouble has more than 8 bytes, and no typed array holds it.
    if dtype.kind not in "iuf" or dtype.itemsize > 8:
        raise ViewError(f"{_where(path)} is an array of {array.dtype}; {ALLOWED}")
    return array.astype(dtype)


def _key(key: Any, path: list[str | int]) -> str:
    if not isinstance(key, str):
        raise ViewError(f"{_where(path)} has the key {key!r}; the keys of a dict are texts")
    return key


def _where(path: list[str | int]) -> str:
    return "data" + "".join(f"[{key!r}]" for key in path)
