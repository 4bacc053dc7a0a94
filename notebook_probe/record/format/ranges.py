"""Bounds of a quantity: as its attributes say, or as the name of a logged scalar suggests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from notebook_probe.record.format.schema import LOGGED_BY
from notebook_probe.record.format.source import StreamView, Variable

__all__ = ["charts_of", "is_bounded", "is_share"]

MOST_CHARTS = 3
"""Further kinds of values share the last chart: more of them would be too low to be read."""

SHARE = (0.0, 1.0)
LOGGED_SHARES = ("fraction", "share", "accuracy")
"""Name endings of shares, the only hint for logged scalars."""


def is_share(variable: Variable) -> bool:
    """Return whether a variable is between 0 and 1.

    Examples
    --------
    >>> is_share(Variable("dead_fraction", attrs={"lies_between": "0 1"}))
    True
    >>> [is_share(Variable(name, long_name=LOGGED_BY)) for name in ("eval_accuracy", "loss")]
    [True, False]
    """
    if variable.bounds is not None:
        return variable.bounds == SHARE
    return variable.long_name == LOGGED_BY and variable.name.endswith(LOGGED_SHARES)


def is_bounded(variable: Variable) -> bool:
    """Return whether a variable has known bounds, as a share or a cosine.

    Examples
    --------
    >>> is_bounded(Variable("grad_cosine", attrs={"lies_between": "-1 1"}))
    True
    """
    return variable.bounds is not None or is_share(variable)


def charts_of(
    streams: Iterable[StreamView],
    series: Iterable[tuple[str, str]],
    chosen: Sequence[Iterable[tuple[str, str]]] = (),
) -> dict[tuple[str, str], int]:
    """Return the number of the chart in which each series is drawn, from 0 for the first.

    Series share a value axis if they have the same units and are all bounded, or all not: on one
    axis with a loss an accuracy would be a flat line. ``chosen`` lists series that are in charts
    already, which come first; another one joins the first chart with values of its kind.
    """
    kinds = {one.name: _axis_kind(one) for stream in streams for one in stream.variables}

    def kind_of(quantity: str) -> str:
        return kinds.get(quantity, Variable(quantity).units)

    listed = {one: number for number, some in enumerate(chosen) for one in some}
    chart_of: dict[str, int] = {}
    for (_, quantity), number in listed.items():
        chart_of.setdefault(kind_of(quantity), number)
    numbers = {*range(len(chosen))}
    last = len(chosen) + MOST_CHARTS - 1
    found = {}
    for one in series:
        if one in listed:
            found[one] = listed[one]
            continue
        number = chart_of.setdefault(kind_of(one[1]), min(len(numbers), last))
        numbers.add(number)
        found[one] = number
    return found


def _axis_kind(variable: Variable) -> str:
    return "bounded" if is_bounded(variable) else variable.units
