"""Values of a formula: at the steps at which every series in it was measured."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import reduce
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from notebook_probe.errors import near
from notebook_probe.record.format.source import ROOT, StreamView
from notebook_probe.record.formulas.functions import FUNCTIONS, OPERATIONS, Doubles
from notebook_probe.record.formulas.nodes import Call, Constant, Node, Operation, Reference
from notebook_probe.record.formulas.parsing import FormulaError

__all__ = ["Pair", "Series", "evaluated", "references"]

Pair: TypeAlias = tuple[str, str]
"""(module, quantity)."""
Series: TypeAlias = tuple[npt.NDArray[np.int64], Doubles]
"""Steps in rising order, and a value for each."""
MOST_MODULES = 1000


def references(node: Node, streams: Mapping[str, StreamView]) -> dict[Reference, list[Pair]]:
    """Return the recorded series that each part of a formula refers to.

    Raises
    ------
    FormulaError
        Nothing of that name is recorded, or of several modules none is named.
    """
    return {one: _pairs(one, many, streams) for one, many in _referred(node, False)}


def evaluated(
    node: Node, pairs: Mapping[Reference, Sequence[Pair]], read: Callable[[Pair], Series]
) -> Series:
    """Return the values of a formula.

    A step at which a series has no value has none in the result. NaN and infinity follow the
    rules of floating point, and never stop the rest.

    Raises
    ------
    FormulaError
        There is no series in it, or no step at which all have values.
    """
    if not pairs:
        raise FormulaError("a formula needs a series")
    with np.errstate(all="ignore"):
        found = _value(node, pairs, read)
    assert isinstance(found, tuple)  # a number alone has no series
    return found


def _referred(node: Node, many: bool) -> list[tuple[Reference, bool]]:
    """Return every reference, and whether it may be of several modules."""
    match node:
        case Reference():
            return [(node, many)]
        case Call():
            return _referred(node.of, FUNCTIONS[node.function].takes_modules)
        case Operation():
            return [*_referred(node.left, False), *_referred(node.right, False)]
    return []


def _pairs(wanted: Reference, many: bool, streams: Mapping[str, StreamView]) -> list[Pair]:
    recorded = _recorded(streams)
    own = recorded.get(wanted.quantity)
    if own is None:
        raise FormulaError(f"no series {wanted.quantity!r} is recorded; {_near(wanted, recorded)}")
    if wanted.module is None:
        found = own if many or len(own) == 1 else [ROOT] if ROOT in own else []
        if not found:
            raise FormulaError(
                f"{wanted.quantity} is recorded of {len(own)} modules: {wanted.quantity}@{own[0]} "
                f"is one, mean({wanted.quantity}) is over all"
            )
    else:
        found = _matching(wanted.module, own)
        if not found:
            close = near(wanted.module, own)
            raise FormulaError(f"no {wanted.quantity} of module {wanted.module!r}; {close}")
        if len(found) > 1 and not many:
            raise FormulaError(f"{wanted} are {len(found)} modules: mean({wanted}) is one series")
    return [(module, wanted.quantity) for module in found[:MOST_MODULES]]


def _near(wanted: Reference, recorded: Mapping[str, Sequence[str]]) -> str:
    # What a user shortens begins so: `acc` is nearer to `accuracy` than to `a`.
    begins = [one for one in recorded if one.startswith(wanted.quantity)]
    return f"did you mean {begins[0]!r}?" if begins else near(wanted.quantity, recorded)


def _matching(module: str, own: Sequence[str]) -> list[str]:
    if module in own:
        return [module]
    return [one for one in own if one != ROOT and fnmatchcase(one, module)]


def _recorded(streams: Mapping[str, StreamView]) -> dict[str, list[str]]:
    """Return the modules of each recorded quantity."""
    found: dict[str, dict[str, None]] = {}
    for stream in streams.values():
        for variable in stream.variables:
            found.setdefault(variable.name, {}).update(dict.fromkeys(stream.modules))
    return {name: [*modules] for name, modules in found.items()}


def _value(
    node: Node, pairs: Mapping[Reference, Sequence[Pair]], read: Callable[[Pair], Series]
) -> Series | float:
    match node:
        case Constant():
            return node.value
        case Reference():
            return read(pairs[node][0])
        case Operation():
            left, right = _value(node.left, pairs, read), _value(node.right, pairs, read)
            return _operated(node.sign, left, right)
    function = FUNCTIONS[node.function]
    if function.takes_modules and isinstance(node.of, Reference):
        steps, columns = _together([read(pair) for pair in pairs[node.of]])
        return steps, function.call(np.stack(columns, axis=1))
    of = _value(node.of, pairs, read)
    if isinstance(of, tuple):
        return of[0], function.call(of[1])
    return float(function.call(np.array([of]))[0])


def _operated(sign: str, left: Series | float, right: Series | float) -> Series | float:
    operate = OPERATIONS[sign]
    if isinstance(left, tuple) and isinstance(right, tuple):
        steps, (one, other) = _together([left, right])
        return steps, operate(one, other)
    if isinstance(left, tuple):
        return left[0], operate(left[1], right)
    if isinstance(right, tuple):
        return right[0], operate(left, right[1])
    return float(operate(np.float64(left), np.float64(right)))


def _together(series: Sequence[Series]) -> tuple[npt.NDArray[np.int64], list[Doubles]]:
    """Return the steps that all series have, and the values of each there."""
    steps = reduce(lambda one, other: np.intersect1d(one, other, True), (s for s, _ in series))
    if not len(steps) and all(len(own) for own, _ in series):
        raise FormulaError("no step has a value of every series in it")
    return steps, [values[np.searchsorted(own, steps)] for own, values in series]
