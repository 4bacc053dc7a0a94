"""The answers to the views of a table, in terms of messages, not of widgets."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from threading import Lock
from typing import Any, TypeAlias

from notebook_probe.errors import ProbeError
from notebook_probe.explorer.draw.worker import Worker
from notebook_probe.explorer.runs_table.arriving import Arriving
from notebook_probe.explorer.runs_table.asked import TableRequest, asked
from notebook_probe.explorer.runs_table.filtering import filtered
from notebook_probe.explorer.runs_table.following import RowsToRead
from notebook_probe.explorer.runs_table.grouping import RunGroups
from notebook_probe.explorer.runs_table.open_rows import OpenRows
from notebook_probe.explorer.runs_table.reading import Records, looked_at
from notebook_probe.explorer.runs_table.table_source import TableSource
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
    source : TableSource
        Functions that read and mark runs.
    send : callable
        Sends a message to all views.
    """

    def __init__(self, open_rows: OpenRows, source: TableSource, send: Send) -> None:
        self._open, self._source, self._send = open_rows, source, send
        self._rows = open_rows.rows
        self._reading = Worker("notebook_probe table of runs")
        self._thinking = Worker("notebook_probe filter of runs")
        # So that messages about rows reach views in the order of the changes.
        self._telling = Lock()
        self._records = Records()
        self._following = RowsToRead(self._rows, source.read_row, self._records)
        self._arriving = Arriving(source.again)
        self._changed: dict[int, None] = {}
        self._in_sight: list[int] = []
        self._grouping: RunGroups | None = None
        self._answering: dict[str, Callable[[TableRequest], None]] = {
            "hello": lambda _: self._reading.do(self._greet),
            "look": lambda _: self._reading.do(self._look),
            "lines": self._on_lines,
            "columns": lambda one: self._thinking.do(partial(self._give, one)),
            "filter": lambda one: self._thinking.do(partial(self._filter, one)),
            "mark": lambda one: self._thinking.do(partial(self._mark, one)),
            "groups": self._on_groups,
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

    # ------------------------------------------------------------------- in a separate thread

    def _filter(self, message: TableRequest) -> None:
        found = filtered(message["text"], [*self._rows], self._source.condition)
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

    def _mark(self, message: TableRequest) -> None:
        """Mark one run; the view that asked learns why it could not be done."""
        problem, mark = "", self._source.mark
        at, field = message["runs"][0], message["names"][0]
        try:
            if mark is None:
                raise ValueError("these runs cannot be marked")
            cells = mark(str(self._rows[at].get("run") or ""), field, message["text"])
        except (ProbeError, OSError, ValueError) as error:
            problem = str(error)
        else:
            with self._telling:
                places = self._open.take_in([{**self._rows[at], **cells}])
                self._changed |= dict.fromkeys(places)
                self._tell(places)
        self._send({"type": "marked", "view": message["view"], "at": at, "problem": problem})

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

    def _on_groups(self, message: TableRequest) -> None:
        """Group these runs by a column; a newer request replaces one that is not answered."""
        [by] = message["names"] or [""]
        rows = [self._rows[at] for at in message["runs"]]
        self._grouping = RunGroups(self._records, by, rows)
        self._reading.do(partial(self._group_next, self._grouping, message["view"]))

    def _group_next(self, groups: RunGroups, view: str) -> None:
        if groups is not self._grouping:
            return
        groups.read_some()
        self._send({"type": "groups", "view": view, **groups.message()})
        if not groups.is_whole:  # other requests may have come
            self._reading.do(partial(self._group_next, groups, view))

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
