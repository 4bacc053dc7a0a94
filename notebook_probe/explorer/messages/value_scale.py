"""On which scale a quantity is read: shares and cosines linearly, sizes by their logarithm."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.record.format.source import Source, Variable

__all__ = ["bounded", "is_bounded", "is_share", "settled", "shares"]

SHARES = ("fraction", "share", "accuracy")
"""How names of shares end."""


def is_share(variable: Variable) -> bool:
    """Whether it lies between 0 and 1, by what it is called or by the first word said of it.

    Examples
    --------
    >>> [is_share(Variable(name)) for name in ("dead_fraction", "eval_accuracy", "loss")]
    [True, True, False]
    >>> is_share(Variable("sign_flips", "1", "Share of weights that changed sign"))
    True
    """
    said = variable.name.endswith(SHARES) or variable.long_name.startswith("Share of ")
    return variable.units == "1" and said


def is_bounded(variable: Variable) -> bool:
    """Whether its values lie between two that are known: a share, or a cosine.

    Examples
    --------
    >>> is_bounded(Variable("grad_cosine", "1", "Whether gradients agree, cos(g_t, g_(t-1))"))
    True
    """
    return is_share(variable) or variable.name.endswith("cosine")


def bounded(source: Source) -> frozenset[str]:
    """The recorded quantities that are."""
    return frozenset(one.name for one in _variables(source) if is_bounded(one))


def shares(source: Source) -> frozenset[str]:
    """The recorded quantities that are shares."""
    return frozenset(one.name for one in _variables(source) if is_share(one))


def settled(source: Source, selection: PanelSelection) -> PanelSelection:
    """The selection with scales for what is drawn, where nobody chose them."""
    log_heat, log_y, linear = selection.log_heat, selection.log_y, bounded(source)
    if log_heat is None:
        log_heat = selection.home not in linear
    if log_y is None:
        log_y = any(quantity not in linear for _, quantity in selection.series)
    series = [one for one in selection.series if "[" not in one[1]]  # an element is no quantity
    return replace(selection.looking_at("series", series), log_heat=log_heat, log_y=log_y)


def _variables(source: Source) -> Iterator[Variable]:
    for stream in source.streams.values():
        yield from stream.variables
