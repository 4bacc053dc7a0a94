"""Places of quantities and modules in the rows of a stream, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from notebook_probe.errors import UnknownNameError, near
from notebook_probe.record.format.schema import module_label

__all__ = ["columns", "quantity_place"]


def quantity_place(stream: str, index: Mapping[str, int], quantity: str) -> int:
    """Place of ``quantity`` in the rows of the stream called ``stream``."""
    if quantity not in index:
        close = near(quantity, index)
        raise UnknownNameError(f"no quantity {quantity!r} in stream {stream!r}; {close}")
    return index[quantity]


def columns(stream: str, index: Mapping[str, int], modules: Sequence[str]) -> list[int]:
    """Places of ``modules`` on the module axis of the stream called ``stream``."""
    labels = [module_label(module) for module in modules]
    for label in labels:
        if label not in index:
            close = near(label, index)
            raise UnknownNameError(f"no module {label!r} in stream {stream!r}; {close}")
    return [index[label] for label in labels]
