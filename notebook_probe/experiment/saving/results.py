"""Results of a user's function, in recordable form."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = ["Results", "read_results"]


@dataclass(frozen=True, slots=True)
class Results:
    """Results by the way they are recorded.

    Attributes
    ----------
    numbers : dict
        A number or a tensor of one element each.
    arrays : dict
        Arrays that are stored unreduced.
    others : dict
        Text and other values that are not numbers.
    """

    numbers: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, Any] = field(default_factory=dict)
    others: dict[str, Any] = field(default_factory=dict)


def read_results(given: Mapping[str, Any], whole: Collection[str], prefix: str = "") -> Results:
    """Sort results: numbers unchanged, arrays averaged or whole, the rest as plain values.

    Parameters
    ----------
    given : mapping
        Numbers, tensors, arrays, lists of numbers, text, and dicts of these.
    whole : names
        Names that are not averaged.
    prefix : str
        Put before each name.

    Raises
    ------
    TypeError
        For any other type.

    Examples
    --------
    >>> read_results({"loss": torch.ones(2), "top": [1, 2], "said": "a"}, ["top"], "valid_a_")
    ... # doctest: +NORMALIZE_WHITESPACE
    Results(numbers={'valid_a_loss': tensor(1.)}, arrays={'valid_a_top': [1, 2]},
            others={'valid_a_said': 'a'})
    """
    results = Results()
    _sort(results, given, whole, prefix)
    return results


def _sort(results: Results, given: Mapping[str, Any], whole: Collection[str], prefix: str) -> None:
    for key, value in given.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            _sort(results, value, whole, f"{name}.")
        elif value is None or isinstance(value, str):
            results.others[name] = value
        elif not _is_numeric(value):
            results.others[name] = _plain(name, value)
        elif key in whole and _n_elements(value) > 1:
            results.arrays[name] = value
        else:
            results.numbers[name] = _mean(value)


def _is_numeric(value: Any) -> bool:
    if isinstance(value, Tensor):
        return not value.is_complex()
    try:
        return np.asarray(value).dtype.kind in "biuf"
    except (ValueError, TypeError):  # of uneven lists; tensors of another device in one
        return False


def _n_elements(value: Any) -> int:
    return value.numel() if isinstance(value, Tensor) else int(np.size(value))


def _mean(value: Any) -> Any:
    """Return the mean in at least float32; a tensor stays on its device."""
    if _n_elements(value) == 0:
        return float("nan")
    if isinstance(value, Tensor):
        wide = value.detach()
        wide = wide if wide.dtype == torch.float64 else wide.to(torch.float32)
        return wide.mean()
    return float(np.mean(np.asarray(value), dtype=np.float64))


def _plain(name: str, value: Any) -> Any:
    """Return lists of text, dicts and similar values in JSON types."""
    if isinstance(value, Mapping):
        return {str(key): _plain(f"{name}[{key!r}]", one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(f"{name}[{place}]", one) for place, one in enumerate(value)]
    if isinstance(value, Tensor | np.ndarray | np.generic) and _is_numeric(value):
        return _plain(name, value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)  # which JSON has not
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise TypeError(
        f"{name} is {type(value).__qualname__}: numbers, tensors, arrays, text, and lists and "
        f"dicts of these can be saved"
    )
