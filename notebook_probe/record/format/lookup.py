"""Places of quantities and modules in the rows of a stream, by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from notebook_probe.errors import UnknownNameError, near
from notebook_probe.record.format.schema import module_label
from notebook_probe.record.format.source import Variable

__all__ = ["columns", "quantity_place", "recorded_name"]


def recorded_name(name: str, variables: Iterable[Variable]) -> str:
    """Return the quantity's name in the record; ``name`` itself unless it is an alias.

    Examples
    --------
    >>> rank = Variable("effective_rank", attrs={"aliases": "RankMe"})
    >>> recorded_name("RankMe", [rank]), recorded_name("loss", [rank])
    ('effective_rank', 'loss')
    """
    variables = tuple(variables)
    if any(variable.name == name for variable in variables):
        return name
    return next((one.name for one in variables if name in one.aliases), name)


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
