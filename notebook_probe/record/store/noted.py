"""Locations of records, noted by their writers: a small file for each in the user's folder.

::

    a writer begins ─▶ <home>/records/<digest>.json ─▶ searches for records

A note contains only the location; it is written once and never changed, so a reader need not read
it again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from notebook_probe.home import home
from notebook_probe.record.store.location import Location, RemoteStore, local_path

__all__ = ["forget_place", "note_place", "noted", "notes_folder", "read_note"]

RECORDS = "records"
_SPELLED = ("endpoint", "endpoint_url", "region")
KEPT_OPTIONS = (*_SPELLED, *(f"aws_{name}" for name in _SPELLED))
"""Options of a store that notes contain; keys and secrets are only in the environment."""
OF_THIS_PROCESS = "memory://"
MOST_BYTES = 1 << 16


def notes_folder() -> Path:
    """Return the folder of notes; it may not exist.

    Raises
    ------
    RuntimeError
        There is no home at all.
    """
    return home() / RECORDS


def note_place(location: Location) -> None:
    """Note the location of a record; errors are ignored, and the record is written anyway."""
    with suppress(Exception):
        note = _note(location)
        if note is None:
            return
        folder = notes_folder()
        text = json.dumps(note, sort_keys=True)
        target = folder / _name(text)
        if target.exists():
            return
        folder.mkdir(parents=True, exist_ok=True)
        # Several processes of one job note the same place at once.
        partial = target.with_suffix(f".{os.getpid()}")
        try:
            partial.write_text(text)
            partial.replace(target)
        finally:
            partial.unlink(missing_ok=True)


def forget_place(location: Location) -> None:
    """Remove the note of a place that has lost its record; calling it twice is fine."""
    with suppress(Exception):
        note = _note(location)
        if note is not None:
            (notes_folder() / _name(json.dumps(note, sort_keys=True))).unlink(missing_ok=True)


def noted() -> Iterator[str]:
    """Yield the names of all notes; none if there is no folder of notes."""
    with suppress(OSError, RuntimeError), os.scandir(notes_folder()) as entries:
        for entry in entries:
            if entry.name.endswith(".json"):
                yield entry.name


def read_note(name: str) -> Location | None:
    """Return the location in a note; None if it cannot be read."""
    try:
        with (notes_folder() / name).open() as file:
            note = json.loads(file.read(MOST_BYTES))
        place, options = note["location"], note.get("options") or {}
    except (OSError, RuntimeError, ValueError, KeyError, TypeError, AttributeError):
        return None
    if not isinstance(place, str) or not isinstance(options, dict):
        return None
    return RemoteStore(place, options=options) if options else place


def _name(text: str) -> str:
    return f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


def _note(location: Location) -> Mapping[str, Any] | None:
    """Return the note about a location; None if no other process can find it."""
    path = local_path(location)
    if path is not None:
        return {"location": str(path.resolve())}
    store = location if isinstance(location, RemoteStore) else RemoteStore(location)
    if not isinstance(store.store, str) or store.store.startswith(OF_THIS_PROCESS):
        return None
    options = {key: store.options[key] for key in KEPT_OPTIONS if key in store.options}
    shipped_to = local_path(store.store)
    place = store.store if shipped_to is None else shipped_to.resolve().as_uri()
    return {"location": place, **({"options": options} if options else {})}
