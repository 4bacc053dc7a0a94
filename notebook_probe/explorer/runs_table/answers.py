"""What the views of a table ask, and what they are answered; knows messages, not widgets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

from notebook_probe.explorer.draw.worker import Worker
from notebook_probe.explorer.runs_table.asked import Asked, asked
from notebook_probe.explorer.runs_table.filtering import Condition, filtered
from notebook_probe.explorer.runs_table.following import Following, ReadRow
from notebook_probe.explorer.runs_table.reading import Records, looked_at
from notebook_probe.lineage.table import LineageTable
from notebook_probe.lineage.view import column_of, columns_of

__all__ = ["Answers", "Send"]

Send: TypeAlias = Callable[[Mapping[str, Any]], None]


class Answers:
    """Answers the views of one table, each question in a thread that nothing else waits for.

    Records are read in one thread, newest question first; what needs none in another, so that
    typing waits for no disk.

    Parameters
    ----------
    table : LineageTable
        What the views show.
    condition : callable
        Reads the text of a condition.
    read_row : callable
        The row of an opened record.
    send : callable
        Sends a message to all views.
    """

    def __init__(
        self, table: LineageTable, condition: Condition, read_row: ReadRow, send: Send
    ) -> None:
        self._table, self._condition, self._send = table, condition, send
        self._rows = [dict(row) for row in table]
        self._reading = Worker("notebook_probe table of runs")
        self._thinking = Worker("notebook_probe filter of runs")
        self._records = Records()
        self._following = Following(self._rows, read_row, self._records)
        self._changed: dict[int, None] = {}
        self._names = dict.fromkeys(table.shown())
        self._in_sight: list[int] = []
        self._answering: dict[str, Callable[[Asked], None]] = {
            "hello": lambda _: self._reading.do(self._greet),
            "look": lambda _: self._reading.do(self._look),
            "lines": self._on_lines,
            "columns": lambda one: self._thinking.do(partial(self._give, one)),
            "filter": lambda one: self._thinking.do(partial(self._filter, one)),
        }

    def receive(self, content: object) -> None:
        """Take in a message from a view and return at once; what is none is not answered."""
        message = asked(content, len(self._rows))
        if message is not None:
            self._answering[message["type"]](message)

    def close(self) -> None:
        """Answer nothing more."""
        self._reading.close()
        self._thinking.close()

    # ------------------------------------------------------------------- in a thread of their own

    def _filter(self, message: Asked) -> None:
        found = filtered(message["text"], self._rows, self._condition)
        self._send(
            {
                "type": "filtered",
                "view": message["view"],
                "text": message["text"],
                "kind": found.kind,
                "rows": found.rows,
                "problem": found.problem,
            }
        )

    def _give(self, message: Asked) -> None:
        self._names |= dict.fromkeys(message["names"])
        columns = columns_of(LineageTable.of(self._rows), message["names"])
        self._send({"type": "columns", "columns": columns})

    # ------------------------------------------------------------------- in the thread of records

    def _greet(self) -> None:
        """A view has come that knows the table as it was at first."""
        self._tell([*self._changed])
        self._send({"type": "looked", "growing": self._following.n})

    def _look(self) -> None:
        news = self._following.news()
        for at, row in news.items():
            self._rows[at] |= row
        self._changed |= dict.fromkeys(news)
        self._tell([*news])
        for at in news:
            self._send_line(at)
        self._send({"type": "looked", "growing": self._following.n})

    def _tell(self, places: list[int]) -> None:
        if not places:
            return
        names = [one for one in self._names if one in self._table.columns]
        rows = [self._rows[at] for at in places]
        columns = [column_of(name, [row.get(name) for row in rows]) for name in names]
        self._send({"type": "rows", "at": places, "columns": columns})

    def _on_lines(self, message: Asked) -> None:
        """Those that were asked for before and are in sight no more are not read."""
        self._in_sight = message["runs"]
        self._reading.do(self._read_next)

    def _read_next(self) -> None:
        if not self._in_sight:
            return
        at, *self._in_sight = self._in_sight
        self._reading.do(self._read_next)  # others may have come before the next one
        self._send_line(at)

    def _send_line(self, at: int) -> None:
        found = looked_at(self._records, str(self._rows[at].get("run") or ""))
        self._send({"type": "line", "at": at, **found})
