"""Tables and cards for a terminal: as wide as it is, without control characters."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from unicodedata import east_asian_width

from notebook_probe.lineage.order import told
from notebook_probe.printable import printable

__all__ = ["cell", "fitting", "json_text", "plain", "print_card", "print_json", "width"]

GAP = "  "
FALLBACK = (100, 24)
LONGEST_NAME = 120
"""Characters of a name on a card, whose longest name indents all values."""
LONGEST = 10_000
"""Characters that are looked at of one line: no terminal shows more of it."""


def width() -> int | None:
    """Columns of the terminal; None where the output goes elsewhere and may be of any width."""
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return shutil.get_terminal_size(FALLBACK).columns
    return None


def plain(text: str) -> str:
    r"""Return a line without characters that move the cursor, change colors, or cannot be written.

    Examples
    --------
    >>> plain("a\nb"), plain("\x1b[31mred") == "�[31mred"
    ('a b', True)
    """
    return printable(" ".join(text[:LONGEST].split()))


def cell(value: object) -> str:
    """Return a value as a cell."""
    return plain(told(value))


def fitting(lines: Sequence[Sequence[str]], columns: int | None) -> tuple[str, int]:
    r"""Return a table with as many columns as fit, and the number of the missing ones.

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
    """Print names and values, a line each."""
    whole = [(plain(name)[:LONGEST_NAME], plain(text)) for name, text in rows if text]
    wide = max((len(name) for name, _ in whole), default=0)
    for name, text in whole:
        print(_cut(f"{name:<{wide}}{GAP}{text}", width()))


def print_json(value: Any) -> None:
    """Print JSON that every parser accepts: NaN and infinities are text."""
    print(json_text(value))


def json_text(value: Any) -> str:
    """Return JSON in one line, in ASCII; NaN and infinities are text.

    Examples
    --------
    >>> json_text({"loss": [0.5, float("nan"), float("-inf")]})
    '{"loss":[0.5,"nan","-inf"]}'
    """
    return json.dumps(_finite(value), allow_nan=False, separators=(",", ":"))


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
    room, kept = columns - 1, []
    for one in line:
        room -= _wide(one)
        if room < 0:
            break
        kept.append(one)
    return f"{''.join(kept)}…"
