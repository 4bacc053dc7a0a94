"""A place where a record is, and what tells that it is another than before."""

from __future__ import annotations

import hashlib
import socket
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from notebook_probe.catalogues.finding.times import folder_mark, is_settled
from notebook_probe.record.store.location import ROOT_KEY, Location, RemoteStore, local_path
from notebook_probe.record.store.other_tools import is_run_of_other_tool, run_of_other_tool
from notebook_probe.record.store.remote import engine_of
from notebook_probe.record.store.remote.engine import top_of

__all__ = ["RecordLocation", "own_host"]

MARKS = "marks/"
"""Prefix of the keys that readers add to a run."""
OTHER = "other:"
"""Prefix of the marks of other tools' runs, whose files may change without their folder."""


@lru_cache(maxsize=1)
def own_host() -> str:
    """Return the name of this machine, to tell its folders from those of others."""
    return socket.gethostname()


@dataclass(frozen=True)
class RecordLocation:
    """Location of one record.

    Attributes
    ----------
    location : path, URL or RemoteStore
    """

    location: Location

    @cached_property
    def key(self) -> tuple[str, str]:
        """The host and the name."""
        return self.host, self.name

    @cached_property
    def name(self) -> str:
        """Name in an index: the path or the URL."""
        return str(self.location if self._folder is None else self._folder)

    @cached_property
    def host(self) -> str:
        """The machine that has it; empty for a store that all machines reach."""
        return "" if self._folder is None else own_host()

    def mark(self) -> str:
        """Return a text that changes with the record; empty if there is none, or it just changed.

        A commit, and a mark of a reader, is a rename in the record's folder, which changes the
        folder's time: one system call for each of thousands of records.

        Raises
        ------
        OSError, ProbeError
            The place cannot be reached.
        """
        if self._folder is None:
            return self._remote_mark()
        if not (self._folder / ROOT_KEY).is_file():
            found = run_of_other_tool(self._folder)
            if found is not None:
                return f"{OTHER}{found.mark()}"
        return folder_mark(self.name)

    def is_as_at(self, mark: str) -> bool:
        """Return whether the record is the same as when it had this mark.

        Raises
        ------
        OSError, ProbeError
            The place cannot be reached.
        """
        if self._folder is None or mark.startswith(OTHER):
            return mark == self.mark()
        return mark == folder_mark(self.name)

    def is_settled(self, mark: str, seen_s: float) -> bool:
        """Return whether the mark is old enough that no later change can have the same one."""
        return self._folder is None or mark.startswith(OTHER) or is_settled(mark, seen_s)

    def is_gone(self) -> bool:
        """Return whether there is certainly no record; False if unknown."""
        try:
            if self._folder is None:
                return not self._remote_mark()
            folder = self._folder
            is_there = (folder / ROOT_KEY).is_file() or folder.is_file()
            return not (is_there or is_run_of_other_tool(folder))
        except Exception:  # whatever the library of a store raises
            return False

    @cached_property
    def _folder(self) -> Path | None:
        return local_path(self.location)

    def _remote_mark(self) -> str:
        location = self.location
        store = location if isinstance(location, RemoteStore) else RemoteStore(location)
        engine = engine_of(store)
        top = top_of(engine)
        told = "".join(f"{name} {tag};" for name, tag in sorted(top.items()))
        if MARKS in top:
            told += repr(engine.read(f"{MARKS}{ROOT_KEY}"))
        return hashlib.sha256(told.encode()).hexdigest() if ROOT_KEY in top else ""
