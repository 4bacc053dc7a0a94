"""Attributes of an object, read with as little of its code as possible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from torch import nn
from torch.utils.data import DataLoader, RandomSampler

from notebook_probe.summary.attempted import attempted

__all__ = ["members"]

Members = Iterable[tuple[str, Any]]


def members(value: object) -> Iterator[tuple[str, Any]]:
    """Names and values: its public attributes, and what its kind is known by.

    Properties are not read, except those of tables such as Hugging Face's.
    """
    for read in (_of_loader, _of_table, _of_dict, _of_slots, _of_modules):
        try:
            found = [*read(value)]
        except Exception:  # the object's own code
            continue
        yield from found


def _of_loader(value: Any) -> Members:
    if issubclass(type(value), DataLoader):
        yield "batch_size", value.batch_size
        # With a batch sampler, the loader's own sampler is a default that is not used.
        used = getattr(value.batch_sampler, "sampler", value.sampler)
        yield "shuffle", issubclass(type(used), RandomSampler)


def _of_table(value: Any) -> Members:
    """Yield the members of a tabular dataset, whose attributes are all private."""
    # Names on the class: a table is recognized without reading anything from it.
    names = ("column_names", "num_rows", "features", "split")
    if all(hasattr(type(value), name) for name in names[:3]):
        for name in names:
            yield name, attempted(lambda name=name: getattr(value, name, None))  # type: ignore[misc]


def _of_dict(value: Any) -> Members:
    # The instance's dict, as properties and `__getattr__` may run any code.
    own = vars(value)
    unused = "sampler" if own.get("batch_sampler") is not None else ""  # that has its own
    for name, held in own.items():
        if type(name) is str and not name.startswith("_") and name != unused:
            yield name, held


def _of_slots(value: Any) -> Members:
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if not name.startswith("_") and hasattr(value, name):
                yield name, getattr(value, name)


def _of_modules(value: Any) -> Members:
    """Yield the parts of a transform that is a module."""
    if issubclass(type(value), nn.Module):
        yield from value._modules.items()
