"""Results of a unit in addition to its loss."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from notebook_probe.errors import ParamError

__all__ = ["RESERVED", "checked", "merged", "targets_of"]

RESERVED = ("loss", "__grads__", "optimizer", "learning_rate")
"""Keys of a unit that are not the user's."""

Targets = Callable[[Any, Any], Mapping[str, Any]]


def targets_of(func: Callable[..., Any], rest: Mapping[str, Any]) -> Targets:
    """``func(inputs, output, **rest)`` without gradients."""

    @torch.no_grad()
    def targets(inputs: Any, output: Any) -> Mapping[str, Any]:
        return func(inputs, output, **rest)

    return targets


def checked(found: Any, where: str) -> dict[str, Any]:
    """Return the result of a user's function, if it is valid."""
    if not isinstance(found, Mapping):
        raise ParamError(f"{where} gave {type(found).__name__}; a dict is expected")
    taken = [name for name in RESERVED if name in found]
    if taken:
        raise ParamError(f"{where} gave {', '.join(map(repr, taken))}, which is reserved")
    return dict(found)


def merged(of_minibatches: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Merge results of minibatches as if of one batch: numbers averaged, arrays concatenated.

    Examples
    --------
    >>> merged([{"right": 0.5, "ids": np.array([1, 2])}, {"right": 1.0, "ids": np.array([3])}])
    {'right': 0.75, 'ids': array([1, 2, 3])}
    """
    if len(of_minibatches) == 1:
        return dict(of_minibatches[0])
    names = dict.fromkeys(name for one in of_minibatches for name in one)
    return {name: _joined([one[name] for one in of_minibatches if name in one]) for name in names}


def _joined(values: Sequence[Any]) -> Any:
    if all(isinstance(value, Tensor) for value in values):
        return (
            # Converted first: torch has no mean of whole numbers.
            torch.stack([*values]).float().mean() if values[0].ndim == 0 else torch.cat([*values])
        )
    if all(isinstance(value, int | float | np.number) for value in values):
        return sum(map(float, values)) / len(values)
    if all(isinstance(value, np.ndarray) and value.ndim for value in values):
        return np.concatenate(values)
    return [*values]
