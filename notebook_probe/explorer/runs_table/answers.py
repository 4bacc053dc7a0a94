"""The answers to the views of a table, in terms of messages, not of widgets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from threading import Lock
from typing import Any, TypeAlias

from notebook_probe.explorer.draw.worker import Worker
from notebook_probe.explorer.runs_table.arriving import Arriving, AskAgain
from notebook_probe.explorer.runs_table.asked import TableRequest, asked
from notebook_probe.explorer.runs_table.filtering import Condition, filtered
from notebook_probe.explorer.runs_table.following import ReadRow, RowsToRead
from notebook_probe.explorer.runs_table.open_rows import OpenRows
from notebook_probe.explorer.runs_table.reading import Records, looked_at
from notebook_probe.lineage.view import columns_of

__all__ = ["Answers", "Send"]

GROWN_S = 1.0
"""Seconds between two reads of growing runs."""

Row = Mapping[str, Any]
Send: TypeAlias = Callable[[Mapping[str, Any]], None]


class Answers:
    """Answer the views of one table, each request in a thread that nothing else waits for.

    Records are read in one thread, newest request first; other requests are answered in a second
    one, so that typing waits for no disk.

    Parameters
    ----------
    open_rows : OpenRows
        Rows that the views show.
    condition : callable
        Reads the text of a condition.
    read_row : callable
        The row of an opened record.
    send : callable
        Sends a message to all views.
    again : callable, optional
        Returns the present rows.
    """

    def __init__(
        self,
        open_rows: OpenRows,
        condition: Condition,
        read_row: ReadRow,
        send: Send,
        again: AskAgain | None = None,
    ) -> None:
        self._open, self._condition, self._send = open_rows, condition, send
        self._rows = open_rows.rows
        self._reading = Worker("notebook_probe table of runs")
        self._thinking = Worker("notebook_probe filter of runs")
        self._telling = Lock()  # what is told of rows reaches views in the order of their changes
        self._records = Records()
        self._following = RowsToRead(self._rows, read_row, self._records)
        self._arriving = Arriving(again)
        self._changed: dict[int, None] = {}
        self._in_sight: list[int] = []
        self._answering: dict[str, Callable[[TableRequest], None]] = {
            "hello": lambda _: self._reading.do(self._greet),
            "look": lambda _: self._reading.do(self._look),
            "lines": self._on_lines,
            "columns": lambda one: self._thinking.do(partial(self._give, one)),
            "filter": lambda one: self._thinking.do(partial(self._filter, one)),
        }

    def receive(self, content: object) -> None:
        """Take in a message from a view and return at once; an invalid one is not answered."""
        message = asked(content, len(self._rows))
        if message is not None:
            self._answering[message["type"]](message)

    def close(self) -> None:
        """Answer nothing more."""
        self._reading.close()
        self._thinking.close()

    # ------------------------------------------------------------------- in a thread of their own

    def _filter(self, message: TableRequest) -> None:
        found = filtered(message["text"], [*self._rows], self._condition)
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

    def _give(self, message: TableRequest) -> None:
        with self._telling:
            self._open.given(message["names"])
            columns = columns_of(self._open.table(), message["names"])
            self._send({"type": "columns", "columns": columns})

    # ------------------------------------------------------------------- in the thread of records

    def _greet(self) -> None:
        """Bring a new view up to date: it has only the initial table."""
        self._tell(sorted(self._changed))
        self._rest()

    def _look(self) -> None:
        grown = self._following.news()
        told = [self._at_its_place(at, row) for at, row in grown.items()]
        told += self._arriving.news()
        n = len(self._rows)
        with self._telling:
            places = self._open.take_in(told)
            self._changed |= dict.fromkeys(places)
            self._tell(places)
        for at in places:
            self._following.told(at)
            if at < n:  # lines of the others are asked for, if they are in sight
                self._send_line(at)
        self._rest()

    def _at_its_place(self, at: int, row: Row) -> Row:
        """Return the row with what its record says; keep the location of a distributed job."""
        return {**self._rows[at], **row, "run": self._rows[at].get("run")}

    def _tell(self, places: list[int]) -> None:
        if places:
            self._send(self._open.message(places))

    def _rest(self) -> None:
        """Report the seconds until there may be more rows."""
        rest_s = GROWN_S if self._following.n else self._arriving.rest_s
        self._send({"type": "looked", "again_s": rest_s, "problem": self._arriving.problem})

    def _on_lines(self, message: TableRequest) -> None:
        """Read these lines; those requested before and no longer in sight are not read."""
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
