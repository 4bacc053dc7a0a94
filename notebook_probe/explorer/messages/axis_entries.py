"""Entries of the module axis that are no modules: single calls, parameters."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence

from notebook_probe.record.format.source import ROOT, Source

__all__ = ["axis_order", "in_order", "is_call", "owner_of"]

_CALL = re.compile(r"(.+)\[(\d+)\]", re.DOTALL)


def is_call(entry: str) -> bool:
    """Return whether an entry is a single call of a module, such as ``cell[0]``."""
    return _CALL.fullmatch(entry) is not None


def owner_of(entry: str, modules: Collection[str]) -> str:
    """Return the module of an entry: the nearest one with which its name starts.

    Examples
    --------
    >>> modules = {"(root)", "rnn", "rnn.cell"}
    >>> [owner_of(entry, modules) for entry in ("rnn.cell[3]", "rnn.gate.bias", "scale")]
    ['rnn.cell', 'rnn', '(root)']
    """
    called = _CALL.fullmatch(entry)
    above = called[1] if called else entry.rpartition(".")[0]
    while above and above not in modules:
        above = above.rpartition(".")[0]
    return above or ROOT


def in_order(modules: Sequence[str], names: Iterable[str]) -> list[str]:
    """All modules, and all of ``names`` that are none, each directly after its module.

    Examples
    --------
    >>> in_order(["(root)", "cell", "fc"], ["fc.weight", "cell[1]", "cell[0]", "fc"])
    ['(root)', 'cell', 'cell[0]', 'cell[1]', 'fc', 'fc.weight']
    """
    table = set(modules)
    below: defaultdict[str, list[str]] = defaultdict(list)
    # dict.fromkeys instead of a set: it keeps the order of attaching.
    for name in dict.fromkeys(names):
        if name not in table:
            below[owner_of(name, table)].append(name)
    if not below:
        return [*modules]
    ordered: list[str] = []
    for module in modules:
        ordered += [module, *sorted(below.pop(module, ()), key=_number)]
    # Owners that are not in the table come last, so that no entry is lost.
    return ordered + [name for left in below.values() for name in left]


def axis_order(source: Source) -> list[str]:
    """Return every entry that a source may have values of, in the order of rows on the screen."""
    streams = source.streams.values()
    names = (name for stream in streams for name in stream.modules)
    return in_order([row.name for row in source.modules], names)


def _number(entry: str) -> int:
    called = _CALL.fullmatch(entry)
    return int(called[2]) if called else -1
