"""Find the tensors in the arguments and results of a module, within containers of any kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

from torch import Tensor
from torch.nn.utils.rnn import PackedSequence
from torch.utils._pytree import tree_map_only

__all__ = ["activations", "copied", "first_of", "stranger_in", "tensors_of"]

MAX_DEPTH = 16


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
    leaves = _leaves(value, {}, 0)
    return list({id(leaf): leaf for leaf in leaves if isinstance(leaf, Tensor)}.values())


def activations(tensors: list[Tensor]) -> list[Tensor]:
    """Return the tensors that are no indices, positions or masks.

    Integers are returned only if there is nothing else, as for tokens.

    Examples
    --------
    >>> import torch
    >>> activations([*torch.tensor([0.5, 0.25]).topk(1)])
    [tensor([0.5000])]
    >>> activations([torch.tensor([7, 8])])
    [tensor([7, 8])]
    """
    return [one for one in tensors if one.is_floating_point() or one.is_complex()] or tensors


def first_of(tensors: Sequence[Tensor]) -> Tensor:
    """Return the first floating-point tensor, else the first one; of at least one."""
    return next((tensor for tensor in tensors if tensor.is_floating_point()), tensors[0])


def copied(value: Any) -> Any:
    """Return ``value`` with copies of its tensors: a model may write into what it is given."""
    return tree_map_only(Tensor, lambda tensor: tensor.detach().clone(), value)


def stranger_in(value: Any) -> str:
    """Class of the first object inside ``value`` that might hold tensors unseen; or empty.

    >>> stranger_in((1, "text", object()))
    'object'
    """
    plain = (Tensor, str, bytes, int, float, complex, type(None))
    leaves = _leaves(value, {}, 0)
    return next((type(leaf).__name__ for leaf in leaves if not isinstance(leaf, plain)), "")


def _leaves(value: Any, seen: dict[int, Any], depth: int) -> Iterator[Any]:
    parts = None if isinstance(value, Tensor) or depth > MAX_DEPTH else _parts(value)
    if parts is None:
        yield value
    elif id(value) not in seen:  # a container may hold another twice, or itself
        seen[id(value)] = value
        for part in parts:
            yield from _leaves(part, seen, depth + 1)


def _parts(value: Any) -> Iterator[Any] | None:
    """Return the values in a container; None for any other object."""
    if isinstance(value, Mapping):
        return iter([*value.values()])
    if isinstance(value, PackedSequence):  # its other tensors are lengths and orders
        return iter((value.data,))
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return iter(value)
    if is_dataclass(value) and not isinstance(value, type):
        return iter([getattr(value, field.name, None) for field in fields(value)])
    return None
