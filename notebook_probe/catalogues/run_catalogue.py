"""Catalogue object of the user: queries over all recorded runs."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from notebook_probe.catalogues.finding import NotedPlaces, RecordLocation, below
from notebook_probe.catalogues.finding.place import own_host
from notebook_probe.catalogues.index import Index
from notebook_probe.catalogues.index.database import reaching
from notebook_probe.catalogues.jobs import as_jobs, with_ranks
from notebook_probe.catalogues.marking import Marking
from notebook_probe.catalogues.marks import read as read_marks
from notebook_probe.catalogues.query import Condition, Where, condition, field_key, field_named
from notebook_probe.catalogues.refreshing import IndexChanges, IndexRefresher
from notebook_probe.catalogues.runs import Runs
from notebook_probe.checks import whole_number
from notebook_probe.errors import CatalogueError, RecordWarning, UnknownNameError, near
from notebook_probe.lineage.order import places as order_of
from notebook_probe.record.store.location import Location

if TYPE_CHECKING:
    from sqlalchemy import Engine

__all__ = ["Catalogue"]

Row = Mapping[str, Any]


class Catalogue(Marking):
    """All runs recorded on this machine, and below a root; made by `catalogue`.

    The catalogue is an index of records in a database, updated before each query. If it is lost, it
    is rebuilt from the records.
    """

    def __init__(self, engine: Engine, roots: Iterable[Location] = ()) -> None:
        self._index = Index(engine)
        self._notes, self._roots = NotedPlaces(), tuple(roots)
        self._refresher = IndexRefresher(self._index, read_marks)
        # A refresh compares records with the index before it writes: one thread at a time.
        self._lock = threading.Lock()

    def runs(
        self,
        where: Where = None,
        *,
        sort: str | None = None,
        descending: bool = False,
        limit: int | None = None,
        archived: bool = False,
        ranks: bool = False,
    ) -> Runs:
        """Return the runs that meet a condition, the newest first, after a refresh.

        Parameters
        ----------
        where : str, dict, callable or None
            ``"params.lr < 1e-3 and state == 'finished'"``, ``{"config.lr": {"$lt": 1e-3}}``, a
            function of a row, or None for every run.
        sort : str, optional
            Column to sort by, ``"best.eval_accuracy"``; runs without a value come last.
        descending : bool
            Sort the largest values first.
        limit : int, optional
            Maximum number of runs.
        archived : bool
            Include archived runs.
        ranks : bool
            Return every rank of a job separately, with its number as ``rank``; otherwise a job is
            one run, at the location of the job, with the values of its first rank and the number of
            ranks as ``ranks``.

        Raises
        ------
        QueryError
            The condition cannot be read.
        UnknownNameError
            No run has a requested column; the message has the close names.
        CatalogueError
            The database cannot be reached or read.

        Warns
        -----
        RecordWarning
            The index could not be updated; its old contents are returned.

        Examples
        --------
        >>> cat.runs("params.lr < 1e-3", sort="best.eval_accuracy", descending=True)
        ... # doctest: +SKIP
        """
        if limit is not None:
            limit = whole_number("runs: limit", limit)
        asked = condition(where)
        by = None if sort is None else field_named(sort)
        question = partial(self._answer, asked, by, descending, limit, archived, ranks)
        self._look()
        kept = question()
        if not kept:
            with reaching(self._index.name):
                known = self._index.fields()
            asked.check(known | {one for one in asked.fields if field_key(one) in known})
        return replace(Runs.of(kept), asked_again=partial(self._answer_now, question))

    def refresh(self) -> IndexChanges:
        """Read the records that have changed.

        Returns
        -------
        IndexChanges
            Number of runs that were added, changed and removed, and those that cannot be read.

        Raises
        ------
        CatalogueError
            The database cannot be reached, read or written.
        """
        return self._looked(self._refresher.refresh)

    def rebuild(self) -> IndexChanges:
        """Read every record again, and replace the index.

        Queries meanwhile use the old index.

        Raises
        ------
        CatalogueError
            The database cannot be reached, read or written.
        """
        return self._looked(self._refresher.rebuild)

    def _looked(self, look: Callable[[list[RecordLocation]], IndexChanges]) -> IndexChanges:
        unreadable: dict[str, str] = {}
        places = [*self._notes.places()]
        for root in self._roots:
            try:
                places += below(root)
            except Exception as error:  # of the disk, or of a store's library
                unreadable[str(root)] = f"{type(error).__name__}: {error}"
        with self._lock, reaching(self._index.name):
            done = look(places)
        return replace(done, unreadable={**unreadable, **done.unreadable})

    def close(self) -> None:
        """Close the database; closing twice is fine."""
        self._index.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _look(self) -> None:
        try:
            self.refresh()
        except CatalogueError as error:
            text = f"the catalogue is as it was when it could last be written: {error}"
            warnings.warn(text, RecordWarning, stacklevel=3)

    def _answer(
        self,
        asked: Condition,
        by: str | None,
        descending: bool,
        limit: int | None,
        archived: bool,
        ranks: bool,
    ) -> list[Row]:
        """Query the index without refreshing it."""
        with self._lock, reaching(self._index.name):
            found = self._one_of_each(self._index.rows(asked))
            places = [place for _, place in self._index.known()]
        kept = [row for row in found if asked.matches(row) and (archived or not row["archived"])]
        kept = (with_ranks if ranks else as_jobs)(kept, places)
        return self._sorted(kept, by, descending)[:limit]

    def _answer_now(self, question: Callable[[], list[Row]]) -> list[Row]:
        """Answer a question again, after a refresh."""
        self.refresh()
        return question()

    def _one_of_each(self, found: list[tuple[str, Row]]) -> list[Row]:
        """Drop rows that another machine has stored about a folder that this one sees, too."""
        ours = {(row["run"], row["run_id"]) for host, row in found if host == own_host()}
        return [
            row
            for host, row in found
            if host in ("", own_host()) or (row["run"], row["run_id"]) not in ours
        ]

    def _sorted(self, rows: list[Row], by: str | None, descending: bool) -> list[Row]:
        # First by name, so that rows with equal values have the same order on every machine.
        rows = sorted(rows, key=lambda row: str(row["run"]))
        if by is None:
            return sorted(rows, key=lambda row: str(row.get("created") or ""), reverse=True)
        if rows and not any(by in row for row in rows):
            known = sorted({name for row in rows for name in row})
            raise UnknownNameError(f"no run has {by!r}; {near(by, known)}")
        order = order_of([row.get(by) for row in rows], descending=descending)
        return [rows[place] for place in order]
