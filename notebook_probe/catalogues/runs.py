"""Table of the runs of a catalogue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from notebook_probe.catalogues.documents import read_document
from notebook_probe.catalogues.marks import Marks, change
from notebook_probe.catalogues.marks import read as read_marks
from notebook_probe.catalogues.query import field_named
from notebook_probe.home import home
from notebook_probe.opened import Lineage, MarkRun
from notebook_probe.record.read.reader import OpenedRecord

__all__ = ["Runs"]


@dataclass(frozen=True, repr=False)
class Runs(Lineage):
    """Recorded runs, one per row; the result of `Catalogue.runs`.

    Prints the columns in which runs differ, draws parallel coordinates by ``picture()``, and its
    ``explore()`` is a widget that opens the run of a clicked row; while visible, it adds new runs
    that match the query.

    Attributes
    ----------
    asked_again : callable, optional
        Function that repeats the query.
    """

    asked_again: Callable[[], Iterable[Mapping[str, Any]]] | None = field(
        default=None, compare=False
    )

    def __getitem__(self, column: str) -> list[Any]:
        """Values of a column, one for each run; ``params.lr`` is ``config.lr``, as in a condition.

        Raises
        ------
        UnknownNameError
            There is no such column.
        """
        return super().__getitem__(field_named(column))

    def matching(self, *wanted: str) -> list[str]:
        """Columns by names or patterns, each once; ``params.*`` is ``config.*``.

        Raises
        ------
        UnknownNameError
            For a name; a pattern may match nothing.
        """
        return super().matching(*map(field_named, wanted))

    def where(self, column: str, is_wanted: Callable[[Any], Any] | object) -> Self:
        """Return the runs with this value, or for which a function is true; new runs are not added.

        Raises
        ------
        UnknownNameError

        Examples
        --------
        >>> cat.runs().where("state", "finished")  # doctest: +SKIP
        """
        return replace(super().where(column, is_wanted), asked_again=None)

    @property
    def _again(self) -> Callable[[], Iterable[Mapping[str, Any]]] | None:
        return self.asked_again

    @property
    def _kept_in(self) -> Path | None:
        try:
            return home()
        except RuntimeError:
            return None

    @property
    def _mark(self) -> MarkRun | None:
        return mark_run

    def _read_row(self, record: OpenedRecord) -> Mapping[str, Any]:
        return {**read_document(record.location).row, **read_marks(record.location)}


def mark_run(place: str, field_name: str, text: str) -> Mapping[str, Any]:
    """Mark the run at a location with text that a user typed; return the changed cells of its row.

    Tags are separated by commas and replace the earlier ones.

    Raises
    ------
    ProbeError, OSError
        The run's record cannot be marked.
    ValueError
        The text is no name, no tags, or too long.
    """
    changed = change(place, lambda marks: HOW[field_name](marks, text))
    # Without a name the title is shown again, which only the record knows.
    named = {} if "name" in changed else {"name": read_document(place).row.get("name")}
    return {**changed, **named}


def _retagged(marks: Marks, text: str) -> Marks:
    tags = [one.strip() for one in text.split(",") if one.strip()]
    return marks.untagged(marks.tags).tagged(tags)


HOW: Mapping[str, Callable[[Marks, str], Marks]] = {
    "name": Marks.named,
    "note": Marks.noted,
    "tags": _retagged,
}
