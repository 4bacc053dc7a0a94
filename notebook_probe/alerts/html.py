"""A table of words for a notebook, whose own style puts everything to the right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

__all__ = ["html_table"]

LEFT = ' style="text-align:left;vertical-align:top"'


def html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Words in columns that begin at the left.

    Examples
    --------
    >>> html_table(["what"], [["a < b"]]).replace(LEFT, "")
    '<table><tr><th>what</th></tr><tr><td>a &lt; b</td></tr></table>'
    """
    lines = [_line("th", head), *(_line("td", row) for row in rows)]
    return f"<table>{''.join(lines)}</table>"


def _line(tag: str, cells: Sequence[str]) -> str:
    inner = "".join(f"<{tag}{LEFT}>{escape(cell)}</{tag}>" for cell in cells)
    return f"<tr>{inner}</tr>"
