"""Tables and cards as a terminal shows them: as wide as it is, and nothing that steers it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from unicodedata import east_asian_width

from notebook_probe.lineage.order import told

__all__ = ["cell", "fitting", "plain", "print_card", "print_json", "width"]

GAP = "  "
FALLBACK = (100, 24)


def width() -> int | None:
    """Columns of the terminal; None where the output goes elsewhere and may be of any width."""
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return shutil.get_terminal_size(FALLBACK).columns
    return None


def plain(text: str) -> str:
    r"""A line without characters that move the cursor, colour the rest, or cannot be written.

    Examples
    --------
    >>> plain("a\nb"), plain("\x1b[31mred") == "�[31mred"
    ('a b', True)
    """
    line = " ".join(text.split())
    return "".join(one if one.isprintable() else "\N{REPLACEMENT CHARACTER}" for one in line)


def cell(value: object) -> str:
    """A value as a cell."""
    return plain(told(value))


def fitting(lines: Sequence[Sequence[str]], columns: int | None) -> tuple[str, int]:
    r"""A table of as many of its columns as there is room for, and how many it lacks.

    The first column is always there, cut if it has to be.

    Examples
    --------
    >>> fitting([("run", "lr", "loss"), ("first", "0.1", "2.5")], 12)
    ('run    lr\nfirst  0.1', 1)
    """
    widths = [max(map(_wide, column)) for column in zip(*lines, strict=True)]
    n = len(widths)
    while columns is not None and n > 1 and sum(widths[:n]) + len(GAP) * (n - 1) > columns:
        n -= 1
    rows = (GAP.join(map(_padded, line[:n], widths)).rstrip() for line in lines)
    return "\n".join(_cut(row, columns) for row in rows), len(widths) - n


def print_card(rows: Iterable[tuple[str, str]]) -> None:
    """Names and what they are, a line each."""
    whole = [(name, plain(text)) for name, text in rows if text]
    wide = max((len(name) for name, _ in whole), default=0)
    for name, text in whole:
        print(_cut(f"{name:<{wide}}{GAP}{text}", width()))


def print_json(value: Any) -> None:
    """As JSON that every parser takes: NaN and infinities are text."""
    print(json.dumps(_finite(value), indent=1, allow_nan=False))


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return str(value) if isinstance(value, float) and value - value != 0 else value


def _wide(text: str) -> int:
    return sum(2 if east_asian_width(one) in "WF" else 1 for one in text)


def _padded(text: str, columns: int) -> str:
    return text + " " * (columns - _wide(text))


def _cut(line: str, columns: int | None) -> str:
    if columns is None or _wide(line) <= columns:
        return line
    kept = line
    while kept and _wide(kept) > columns - 1:
        kept = kept[:-1]
    return f"{kept}…"
