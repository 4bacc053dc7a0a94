"""Tables and cards as text and as HTML in the notebook's own colors, light or dark."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from textwrap import TextWrapper

__all__ = ["as_html", "html_card", "html_table", "plain", "text_card", "text_table"]

LINE = 100
"""Characters of a line of text."""

LEFT = "text-align: left; vertical-align: top"
WRAPPED, WHOLE = "overflow-wrap: anywhere", "white-space: nowrap"
BACKGROUND = "var(--jp-layout-color0, var(--vscode-editor-background, Canvas))"
"""Background of a fixed header: JupyterLab's, VS Code's, or the browser's."""


def text_table(lines: Iterable[Sequence[str]]) -> str:
    """Columns under each other; the last may be of any length.

    >>> print(text_table([("name", "units"), ("weight_norm", "1")]))
    name         units
    weight_norm  1
    """
    rows = [*lines]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def html_table(columns: Mapping[str, str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table that scrolls below its header.

    Parameters
    ----------
    columns : mapping of str to str
        Head of each, and the least width of one with sentences; others are as wide as they need.
    rows : iterable of sequence of str
        Cells as HTML.
    """
    head = "".join(map(_head, columns, columns.values()))
    wraps = [WRAPPED if width else WHOLE for width in columns.values()]
    body = "".join(f"<tr>{''.join(map(_cell, row, wraps))}</tr>" for row in rows)
    return (
        '<div style="max-height: 36em; overflow: auto">'
        f'<table style="margin: 0; table-layout: auto"><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _head(name: str, width: str) -> str:
    least = f"; min-width: {width}" if width else ""
    stays = f"position: sticky; top: 0; background: {BACKGROUND}"
    return f'<th style="{LEFT}; {stays}{least}">{escape(name)}</th>'


def _cell(html: str, wrap: str) -> str:
    return f'<td style="{LEFT}; {wrap}">{html}</td>'


def text_card(title: str, facts: Mapping[str, str]) -> str:
    """Return a title, and below it facts, each with its name.

    >>> print(text_card("lr: Learning rate.", {"units": "1", "source": "not given"}))
    lr: Learning rate.
      units   1
      source  not given
    """
    width = max(map(len, facts), default=0)
    lines = (_hanging(f"  {name:{width}}  ", plain(text)) for name, text in facts.items())
    return "\n".join([title, *lines])


def _hanging(name: str, text: str) -> str:
    """Return paragraphs next to a name, no wider than a terminal."""
    wrap = TextWrapper(LINE, subsequent_indent=" " * len(name), break_long_words=False)
    lines: list[str] = []
    for paragraph in text.splitlines():
        wrap.initial_indent = " " * len(name) if lines else name
        lines.append(wrap.fill(paragraph))
    return "\n".join(lines)


def html_card(title: str, facts: Mapping[str, str]) -> str:
    """Return a card for a notebook; ``title`` is HTML, ``facts`` are a docstring's text."""
    rows = "".join(
        f'<tr><th style="{LEFT}; white-space: nowrap">{escape(name)}</th>'
        f'<td style="{LEFT}">{as_html(text)}</td></tr>'
        for name, text in facts.items()
    )
    return f'{title}<table style="margin: 0; max-width: 60em">{rows}</table>'


_MARKED = re.compile(r"``(.+?)``|`([^`\n]+)`|(https?://[^\s;,<>\"'`]+)", re.DOTALL)
"""Code in a docstring's text, in two forms, and an address."""


def plain(text: str) -> str:
    r"""Return a docstring's text without markup, a paragraph on a line.

    >>> plain("Half of ``y = 0`` is usual.\n\nMore\nis `dead_fraction`.")
    'Half of y = 0 is usual.\nMore is dead_fraction.'
    """
    bare = (_MARKED.sub(lambda found: found[found.lastindex or 0], each) for each in _parts(text))
    return "\n".join(bare)


def as_html(text: str) -> str:
    """Return a docstring's text as HTML, with code and links.

    >>> as_html("Above ``<b>``, see `lr`.")
    'Above <code>&lt;b&gt;</code>, see <code>lr</code>.'
    """
    return "<br>".join(map(_paragraph, _parts(text)))


def _parts(text: str) -> list[str]:
    return [" ".join(each.split()) for each in re.split(r"\n\s*\n", text.strip())]


def _paragraph(text: str) -> str:
    pieces, last = [], 0
    for found in _MARKED.finditer(text):
        inside = escape(found[found.lastindex or 0])
        marked = f'<a href="{inside}">{inside}</a>' if found[3] else f"<code>{inside}</code>"
        pieces += [escape(text[last : found.start()]), marked]
        last = found.end()
    return "".join([*pieces, escape(text[last:])])
