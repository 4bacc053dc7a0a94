"""Lines of a terminal, from pieces of text as a program writes them."""

from __future__ import annotations

import re

from notebook_probe.printable import printable

__all__ = ["LineFeed"]

MOST_LETTERS = 400
"""Letters of a line; of a longer one the rest is left out."""
MOST_OPEN = 10_000
"""Letters of a line that has not ended."""
_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
"""Sequences for a terminal: colors, cursor, title."""


class LineFeed:
    r"""Lines of one stream: a carriage return begins the line again, as progress bars do.

    Examples
    --------
    >>> feed = LineFeed()
    >>> feed.add("epoch 1\n 10%\r 20%"), feed.rest
    (['epoch 1'], ' 20%')
    >>> feed.add("\r100%\n\x1b[31mred\x1b[0m\n")
    ['100%', 'red']
    """

    def __init__(self) -> None:
        self._open = ""

    @property
    def rest(self) -> str:
        """The line that has not ended, as a terminal shows it."""
        return _shown(self._open)

    def add(self, text: str) -> list[str]:
        """Return the lines that end in this piece."""
        *ended, self._open = (self._open + text).split("\n")
        if len(self._open) > MOST_OPEN:
            self._open = self._open[-MOST_OPEN:]
        return [_shown(line) for line in ended]


def _shown(line: str) -> str:
    last = line.rstrip("\r").rpartition("\r")[2]
    plain = printable(_ESCAPES.sub("", last[: 4 * MOST_LETTERS])).rstrip()
    return plain if len(plain) <= MOST_LETTERS else f"{plain[: MOST_LETTERS - 1]}…"
