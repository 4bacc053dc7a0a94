"""Marks on runs through a catalogue, and removal of runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from notebook_probe.catalogues.marks import CleanUp, change, clean_up
from notebook_probe.catalogues.query import Where, condition
from notebook_probe.catalogues.runs import Runs
from notebook_probe.errors import QueryError, UnknownNameError, near, shown_as
from notebook_probe.record.store.location import Location, ends_in

__all__ = ["Marking"]

SHORTEST_ID = 4
"""Characters of an id that tell a run from others."""


@shown_as("Catalogue")
class Marking(ABC):
    """Marks and clean-up for classes that query runs.

    A run is named by its location, its name, the end of its location as in tables of runs with one
    name, the start of its id, its row, or itself. Marks are in the record, where every catalogue
    finds them; the run may be training.
    """

    @abstractmethod
    def runs(self, where: Where = None, *, archived: bool = False) -> Runs: ...

    def tag(self, run: Any, *tags: str) -> None:
        """Tag a run, ``"tags has 'good'"`` asks for it.

        Raises
        ------
        UnknownNameError
            No run is called so, or several are.
        ValueError
            An invalid tag: a line of at most 100 characters is allowed.
        RecordWriteError
            The run's record cannot be marked.

        Examples
        --------
        >>> cat.tag("digits-3", "good", "for the paper")  # doctest: +SKIP
        """
        change(self.place_of(run), lambda marks: marks.tagged(tags))

    def untag(self, run: Any, *tags: str) -> None:
        """Remove tags; missing ones are ignored."""
        change(self.place_of(run), lambda marks: marks.untagged(tags))

    def note(self, run: Any, text: str) -> None:
        """Set the note of a run, replacing the previous one."""
        change(self.place_of(run), lambda marks: marks.noted(text))

    def rename(self, run: Any, name: str) -> None:
        """Show a run under another name in tables; an empty one brings its title back.

        Raises
        ------
        UnknownNameError
            No run is called so, or several are.
        ValueError
            An invalid name: a line of at most 100 characters is allowed.
        RecordWriteError
            The run's record cannot be marked.

        Examples
        --------
        >>> cat.rename("digits-3", "deep, with warmup")  # doctest: +SKIP
        """
        change(self.place_of(run), lambda marks: marks.named(name))

    def archive(self, run: Any) -> None:
        """Archive a run: tables omit it unless called with ``archived=True``."""
        change(self.place_of(run), lambda marks: marks.put_aside(True))

    def restore(self, run: Any) -> None:
        """Restore an archived run."""
        change(self.place_of(run), lambda marks: marks.put_aside(False))

    def clean_up(self, where: Where) -> CleanUp:
        """Return what would be deleted of the runs that meet a condition; ``.delete()`` deletes it.

        A run is deleted with its checkpoints, the note of its location, and empty parts of an
        experiment's folder, if its folder on this machine, that of each of its ranks, or its packed
        file contains its record and nothing else, and no process writes it. Archived runs are
        included.

        Raises
        ------
        QueryError
            The condition cannot be read, or every run meets it.

        Examples
        --------
        >>> found = cat.clean_up("state == 'killed' and steps < 100")  # doctest: +SKIP
        >>> found.delete()  # doctest: +SKIP
        """
        asked = condition(where)
        if asked == condition(None):
            raise QueryError(
                f"where={where!r} asks for every run; name some, such as \"state == 'killed'\""
            )
        return clean_up(self.runs(asked, archived=True))

    def place_of(self, run: Any) -> Location:
        """Return the location of a run's record.

        Raises
        ------
        UnknownNameError
            No run is called so, or several are.
        """
        if isinstance(run, Mapping):
            return str(run["run"])
        if not isinstance(run, str):
            return Path(run) if isinstance(run, PathLike) else getattr(run, "location", run)
        if "://" in run or Path(run).expanduser().exists():
            return run
        rows = self.runs(archived=True)
        called = [row for row in rows if _is_called(row, run)]
        found = called or [row for row in rows if ends_in(str(row["run"]), run)]
        if len(found) == 1:
            return str(found[0]["run"])
        if found:
            places = ", ".join(str(row["run"]) for row in found[:4])
            raise UnknownNameError(f"{len(found)} runs are called {run!r}; name a place: {places}")
        raise UnknownNameError(
            f"no run {run!r}, neither a place, a name nor an id; {near(run, rows.labels)}"
        )


def _is_called(row: Mapping[str, Any], word: str) -> bool:
    is_id = len(word) >= SHORTEST_ID and str(row.get("run_id", "")).startswith(word)
    return is_id or row.get("name") == word
