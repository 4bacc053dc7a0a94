"""Check for an active writer: a dead one has no lock and no lease."""

from __future__ import annotations

import json
import time
from contextlib import suppress

from notebook_probe.record.store.location import ROOT_KEY, Location, RemoteStore, local_path
from notebook_probe.record.store.lock import is_locked
from notebook_probe.record.store.other_tools import run_of_other_tool
from notebook_probe.record.store.remote import engine_of

__all__ = ["find_writer", "has_writer"]


def has_writer(location: Location) -> bool:
    """Return whether a process may write there; on another machine, until its lease expires.

    A store that cannot be reached, or is none of ours, counts as having none.
    """
    try:
        return find_writer(location)
    except Exception:  # whatever the library of a store raises
        return False


def find_writer(location: Location) -> bool:
    """Return `has_writer`; raises what the library of a store raises."""
    folder = local_path(location)
    if folder is not None:
        if (folder / ROOT_KEY).is_file():
            return is_locked(folder)
        found = run_of_other_tool(folder)
        return is_locked(folder) if found is None else found.is_growing()
    store = location if isinstance(location, RemoteStore) else RemoteStore(location)
    lease = engine_of(store).lease()
    ends = None
    with suppress(ValueError, AttributeError):  # damaged
        ends = None if lease is None else json.loads(lease.content).get("ends")
    return isinstance(ends, int | float) and ends > time.time()
