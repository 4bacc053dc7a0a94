"""The places that writers of this machine have noted, each note read once."""

from __future__ import annotations

from notebook_probe.catalogues.finding.place import Place
from notebook_probe.record.store.noted import noted, read_note

__all__ = ["Notes"]


class Notes:
    """All places that are noted in the user's own folder."""

    def __init__(self) -> None:
        self._read: dict[str, Place | None] = {}

    def places(self) -> list[Place]:
        """As noted now; a note never changes."""
        names = [*noted()]
        for name in names:
            if name not in self._read:
                location = read_note(name)
                self._read[name] = None if location is None else Place(location)
        found = (self._read[name] for name in names)
        return [place for place in found if place is not None]
