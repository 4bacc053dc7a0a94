"""Shapes of what a model is called with, noted instead of the batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only

__all__ = ["InputShapes"]

PLAIN = (int, float, bool, str, type(None), torch.dtype, torch.device)
"""Types of other arguments that are noted as they are: they hold no memory."""


class InputTensor(NamedTuple):
    """Shape of one tensor argument; holds no memory of it."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    device: torch.device


@dataclass(frozen=True, slots=True)
class InputShapes:
    """Arguments of a call, with shapes in the place of tensors.

    Examples
    --------
    >>> shapes = InputShapes.of((torch.ones(2, 3), None), {"causal": True})
    >>> args, kwargs = shapes.zeros()
    >>> args[0].shape, args[1], kwargs
    (torch.Size([2, 3]), None, {'causal': True})
    >>> InputShapes.of((object(),), {}) is None
    True
    """

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]

    @classmethod
    def of(cls, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> InputShapes | None:
        """Return the shapes of these arguments; None if others than tensors may hold memory."""
        given = [args, dict(kwargs)]
        if not all(type(leaf) is Tensor or isinstance(leaf, PLAIN) for leaf in tree_leaves(given)):
            return None
        found = tree_map_only(Tensor, _shape_of, given)
        return cls(*found)

    def zeros(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return such arguments, with zeros in every tensor."""
        made = tree_map_only(InputTensor, _zeros, [self.args, dict(self.kwargs)], is_leaf=_is_shape)
        return made[0], made[1]


def _shape_of(tensor: Tensor) -> InputTensor:
    return InputTensor(tuple(tensor.shape), tensor.dtype, tensor.device)


def _is_shape(value: object) -> bool:
    return isinstance(value, InputTensor)


def _zeros(shape: InputTensor) -> Tensor:
    return torch.zeros(shape.shape, dtype=shape.dtype, device=shape.device)
