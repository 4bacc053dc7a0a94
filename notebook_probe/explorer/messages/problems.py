"""What went wrong inside the panel itself: nobody sees a print in a callback."""

from __future__ import annotations

from collections import OrderedDict

from notebook_probe.explorer.messages.wire import ProblemRow

__all__ = ["Problems"]

KEPT = 8


class Problems:
    """The last few, the same one counted instead of repeated."""

    def __init__(self) -> None:
        self._rows: OrderedDict[str, ProblemRow] = OrderedDict()

    def add(self, error: Exception, where: str) -> None:
        """Note an exception: a sentence for the panel."""
        text = f"{where}: {type(error).__name__}: {error}"
        count = self._rows[text]["count"] + 1 if text in self._rows else 1
        self._rows[text] = {
            "module": "",
            "quantity": "",
            "text": text,
            "count": count,
            "disabled": False,
        }
        while len(self._rows) > KEPT:
            self._rows.popitem(last=False)

    def rows(self) -> list[ProblemRow]:
        return list(self._rows.values())
