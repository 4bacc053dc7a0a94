"""One batch: inputs of the model, and labels for its output."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import Tensor

__all__ = [
    "LABEL_KEYS",
    "Batch",
    "Device",
    "Spec",
    "check_batches",
    "check_one_batch",
    "moved",
    "read_item",
]

Spec: TypeAlias = Hashable
"""Kind of a batch, if a dataset has several; None if it has one."""

Device: TypeAlias = "torch.device | str"

LABEL_KEYS = ("labels", "label", "targets", "target")
"""Keys of the labels in a batch that is a dict."""

NO_KEYWORDS: Mapping[str, Any] = MappingProxyType({})

ALLOWED = (
    "allowed: (inputs, labels), (spec, inputs, labels), a dict, or the inputs alone, where inputs "
    "and labels are a tensor, or a list or a dict of them"
)


class Batch(NamedTuple):
    """Batch of a step.

    Attributes
    ----------
    spec : hashable
    inputs : tuple
        Positional arguments of the model.
    labels : tuple
    keywords : dict
        Keyword arguments of the model.
    """

    spec: Spec
    inputs: tuple[Any, ...]
    labels: tuple[Any, ...]
    keywords: Mapping[str, Any]

    @property
    def shape(self) -> tuple[int, int, tuple[str, ...]]:
        """Numbers of inputs and labels, and the names of the keywords."""
        return len(self.inputs), len(self.labels), tuple(self.keywords)

    def to(self, device: Device) -> Batch:
        """Return the same batch with its tensors there."""
        return Batch(
            self.spec,
            tuple([moved(value, device) for value in self.inputs]),
            tuple([moved(value, device) for value in self.labels]),
            {name: moved(value, device) for name, value in self.keywords.items()},
        )


def read_item(item: Any) -> Batch:
    """Read an item of a dataset as a batch.

    Raises
    ------
    ValueError
        For another form, without an input, and for None among inputs or labels.
    """
    if type(item) in (tuple, list) and len(item) == 2:  # nearly always, and of two tensors
        inputs, labels = item
        if isinstance(inputs, Tensor) and isinstance(labels, Tensor):
            return Batch(None, (inputs,), (labels,), NO_KEYWORDS)
    spec, inputs, labels = _parts_of(item)
    if isinstance(inputs, Mapping):
        batch = Batch(spec, (), _listed(labels), dict(inputs))
    else:
        batch = Batch(spec, _listed(inputs), _listed(labels), NO_KEYWORDS)
    if not (batch.inputs or batch.keywords):
        raise ValueError(f"a batch without inputs; {ALLOWED}")
    if any(value is None for value in (*batch.inputs, *batch.labels, *batch.keywords.values())):
        raise ValueError(f"None among the inputs or labels of a batch; {ALLOWED}")
    return batch


def check_batches(where: str, given: Any) -> None:
    """Refuse one batch where batches are expected, of which each part would be read as a batch.

    Parameters
    ----------
    where : str
        Name of the value in errors.
    given : object

    Raises
    ------
    TypeError
        For a dict, a tensor, and a tuple with a tensor or a dict in it.
    """
    is_pair = _is_pair(given)
    if is_pair or isinstance(given, Tensor | Mapping):
        shape = "(x, y)" if is_pair else "x"
        raise TypeError(
            f"{where}: one batch is given where batches are expected; allowed: a list of them, "
            f"such as [{shape}]"
        )


def check_one_batch(where: str, given: Any, instead: str) -> None:
    """Refuse a list of batches where one is expected: it would be read as inputs and labels.

    Parameters
    ----------
    where, instead : str
        The call in words, and the call that takes several batches.
    given : object

    Raises
    ------
    TypeError
        For a list of tuples, and of one dict.
    """
    if type(given) is not list or not given:
        return
    if all(isinstance(one, Batch) or _is_pair(one) for one in given) or (
        len(given) == 1 and isinstance(given[0], Mapping)
    ):
        raise TypeError(
            f"{where}: a list of batches is given where one batch is expected; allowed: one batch, "
            f"such as (x, y), or {instead}"
        )


def _is_pair(given: Any) -> bool:
    return type(given) is tuple and any(isinstance(one, Tensor | Mapping) for one in given)


def _parts_of(item: Any) -> tuple[Spec, Any, Any]:
    if isinstance(item, Mapping):
        labels = [item[key] for key in LABEL_KEYS if key in item]
        return None, item, labels
    if not isinstance(item, tuple | list):
        return None, item, ()
    if len(item) == 1:
        return None, item[0], ()
    if len(item) == 2:
        return None, *item
    if len(item) == 3:
        spec, inputs, labels = item
        if not isinstance(spec, Hashable) or isinstance(spec, Tensor):
            raise ValueError(
                f"of three parts the first, {type(spec).__name__}, must be hashable and "
                f"no tensor: it tells kinds of batches apart; {ALLOWED}"
            )
        return spec, inputs, labels
    raise ValueError(f"a batch of {len(item)} parts; {ALLOWED}")


def _listed(values: Any) -> tuple[Any, ...]:
    if isinstance(values, tuple | list):
        return tuple(values)
    return () if values is None else (values,)


def moved(value: Any, device: Device) -> Any:
    """Move a tensor, or a container of tensors, to that device; return anything else unchanged."""
    if isinstance(value, Tensor):
        # If a loader pins its memory, the copy runs while the device still computes.
        return value.to(device, non_blocking=True)
    if isinstance(value, Mapping):
        return {key: moved(inner, device) for key, inner in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return _like(value, [moved(inner, device) for inner in value])
    to: Callable[[Device], Any] | None = getattr(value, "to", None)
    return to(device) if callable(to) else value


def _like(value: Sequence[Any], parts: list[Any]) -> Any:
    if hasattr(value, "_fields"):  # a named tuple
        return type(value)(*parts)
    return tuple(parts) if isinstance(value, tuple) else parts
