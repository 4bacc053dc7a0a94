"""Check of values that are set at the widget's traits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, get_args

from notebook_probe.errors import UnknownNameError, near
from notebook_probe.explorer.messages.axis_entries import axis_order
from notebook_probe.explorer.messages.selection import MOST_OTHERS
from notebook_probe.explorer.messages.wire import Alignment
from notebook_probe.record.format.source import ROOT, Source
from notebook_probe.record.formulas import is_formula, parsed

__all__ = ["check"]


def check(name: str, value: Any, source: Source, listed: Iterable[str]) -> Any:
    """Check a value of the trait ``name``; return it with the recorded names of quantities.

    Parameters
    ----------
    name : str
        ``"home"``, ``"series"``, ``"window"``, ``"step"``, ``"rows"``, ``"folds"``, or about other
        runs ``"others"``, ``"aligned"``, ``"grouped"``, ``"apart"``.
    source : Source
        Source with the modules and quantities.
    listed : iterable of str
        Quantities that can be attached, recorded or not.

    Raises
    ------
    UnknownNameError
        An unknown quantity or module; the message lists close ones.
    ValueError
        An invalid window or step, or more other runs than can be distinguished.
    """
    return CHECKS[name](value, source, listed)


def _home(quantity: str, source: Source, listed: Iterable[str]) -> str:
    quantity = source.recorded_name(quantity)
    every = (*source.streams.values(), *source.elements.values())
    recorded = (one.name for stream in every for one in stream.variables)
    known = dict.fromkeys([*recorded, *listed])
    if quantity and quantity not in known:
        raise UnknownNameError(f"no quantity {quantity!r} here; {near(quantity, known)}")
    return quantity


def _series(
    series: Iterable[tuple[str, str]], source: Source, listed: Iterable[str]
) -> tuple[tuple[str, str], ...]:
    known, found = axis_order(source), []
    for module, quantity in series:
        place = _place(module, known)
        if is_formula(quantity):
            parsed(quantity)  # raises for one that cannot be read
            found.append((ROOT, quantity))
            continue
        # Elements of vectors have names such as `output_histogram[3]`: only the front is a
        # quantity.
        name, bracket, element = quantity.partition("[")
        may_come = place == ROOT and not source.finished  # the loop may log it later
        own = source.recorded_name(name) if may_come else _home(name, source, listed)
        found.append((place, own + bracket + element))
    return tuple(found)


def _rows(rows: Iterable[str], source: Source, listed: Iterable[str]) -> tuple[str, ...]:
    known = axis_order(source)
    return tuple(dict.fromkeys(_place(one, known) for one in rows))


def _place(module: str, known: Sequence[str]) -> str:
    """Return a module's name on the module axis, where the whole model is not ``""``."""
    place = module or ROOT
    if place not in known:
        raise UnknownNameError(f"no module {module!r} here; {near(module, known)}")
    return place


def _window(
    window: tuple[float, float] | None, source: Source, listed: Iterable[str]
) -> tuple[float, float] | None:
    if window is not None and not window[0] < window[1]:
        raise ValueError(f"window={window!r}: (first, last) with first below last, or None")
    return window


def _step(step: int, source: Source, listed: Iterable[str]) -> int:
    if step < 0:
        raise ValueError(f"step={step!r}: a step is a whole number from 0")
    return step


def _others(others: Iterable[str], source: Source, listed: Iterable[str]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(others))
    if len(found) > MOST_OTHERS or "" in found:
        raise ValueError(f"others={found!r}: paths or URLs of at most {MOST_OTHERS} runs")
    return found


def _aligned(by: str, source: Source, listed: Iterable[str]) -> str:
    allowed = get_args(Alignment)
    if by not in allowed:
        raise UnknownNameError(f"runs are not aligned by {by!r}; allowed: {', '.join(allowed)}")
    return by


# At a factor of 1 every pair of runs would differ from its first row on.
def _checked_apart(
    apart: tuple[float, int], source: Source, listed: Iterable[str]
) -> tuple[float, int]:
    """Return the bounds of a divergence; raise ValueError for others."""
    factor, rows = apart
    if not (factor > 1 and rows > 0):
        raise ValueError(f"apart={apart!r}: (factor, rows), a factor above 1 and rows from 1")
    return factor, rows


CHECKS: Mapping[str, Callable[[Any, Source, Iterable[str]], Any]] = {
    "home": _home,
    "series": _series,
    "window": _window,
    "step": _step,
    "rows": _rows,
    "folds": _rows,
    "others": _others,
    "aligned": _aligned,
    "grouped": lambda grouped, *_: grouped,
    "apart": _checked_apart,
}
