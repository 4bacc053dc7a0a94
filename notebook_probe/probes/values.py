"""Walking what a module takes and returns: the tensors in tuples, dicts, dataclasses, sequences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from torch import Tensor
from torch.nn.utils.rnn import PackedSequence

__all__ = ["tensors_of"]

MAX_DEPTH = 6


def tensors_of(value: Any) -> list[Tensor]:
    """Every distinct tensor inside ``value``, in order; an unknown object holds none.

    Examples
    --------
    >>> import torch
    >>> one = torch.ones(1)
    >>> len(tensors_of({"a": (one, one), "b": [torch.zeros(2), "text"]}))
    2
    """
    if isinstance(value, Tensor):
        return [value]
    if type(value) is tuple and len(value) == 1 and isinstance(value[0], Tensor):  # most calls
        return [value[0]]
    found: dict[int, Tensor] = {id(tensor): tensor for tensor in _walk(value, 0)}
    return list(found.values())


def _walk(value: Any, depth: int) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif depth < MAX_DEPTH:
        for part in _parts(value):
            yield from _walk(part, depth + 1)


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        return iter(value.values())
    if isinstance(value, PackedSequence):  # its other tensors are lengths and orders
        return iter((value.data,))
    if isinstance(value, tuple | list):
        return iter(value)
    if is_dataclass(value) and not isinstance(value, type):
        return (getattr(value, field.name, None) for field in fields(value))
    return iter(())
