"""The places that writers of this machine have noted, each note read once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from notebook_probe.catalogues.finding.place import RecordLocation
from notebook_probe.catalogues.finding.times import folder_mark, is_settled
from notebook_probe.record.store.noted import noted, notes_folder, read_note

__all__ = ["NotedPlaces"]


class NotedPlaces:
    """All places that are noted in the user's own folder."""

    def __init__(self) -> None:
        self._read: dict[str, RecordLocation | None] = {}
        self._listed: tuple[str, Sequence[RecordLocation]] = "", ()

    def places(self) -> Sequence[RecordLocation]:
        """Return the noted places; cached, as every new note changes the time of the folder."""
        seen_s, mark = time.time(), ""
        with suppress(OSError, RuntimeError):
            mark = folder_mark(str(notes_folder()))
        if mark and mark == self._listed[0]:
            return self._listed[1]
        places = self._list()
        # A folder changed within the clock's resolution may change again with the same time.
        self._listed = (mark if is_settled(mark, seen_s) else ""), places
        return places

    def _list(self) -> Sequence[RecordLocation]:
        names = [*noted()]
        for name in names:
            if name not in self._read:
                location = read_note(name)
                self._read[name] = None if location is None else RecordLocation(location)
        found = (self._read[name] for name in names)
        return [place for place in found if place is not None]
