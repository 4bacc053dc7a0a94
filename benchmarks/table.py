"""A table that grows line by line while it is measured, as Markdown."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["Table"]


class Table:
    """Prints its head at once and every row when it is known.

    Parameters
    ----------
    columns : mapping of str to int
        Head and least width of each column.
    """

    def __init__(self, columns: Mapping[str, int]) -> None:
        self._widths = [max(len(head), width) for head, width in columns.items()]
        self.row(*columns)
        self.row(*("-" * width for width in self._widths))

    def row(self, *cells: str) -> None:
        """Print one line; what is left out stays empty."""
        filled = [*cells, *[""] * (len(self._widths) - len(cells))]
        padded = (cell.ljust(width) for cell, width in zip(filled, self._widths, strict=True))
        print(f"| {' | '.join(padded)} |", flush=True)
