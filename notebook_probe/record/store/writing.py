"""Whether somebody writes into a record now: who died holds neither lock nor lease."""

from __future__ import annotations

import json
import time

from notebook_probe.record.store.location import Location, RemoteStore, local_path
from notebook_probe.record.store.lock import is_locked
from notebook_probe.record.store.remote import engine_of

__all__ = ["has_writer"]


def has_writer(location: Location) -> bool:
    """Whether a process holds the right to write there; of another machine's until it lapses.

    A store that cannot be reached, or that is none of ours, has none as far as can be told.
    """
    folder = local_path(location)
    if folder is not None:
        return is_locked(folder)
    store = location if isinstance(location, RemoteStore) else RemoteStore(location)
    try:
        lease = engine_of(store).lease()
        ends = None if lease is None else json.loads(lease.content).get("ends")
    except Exception:  # whatever the library of a store raises
        return False
    return isinstance(ends, int | float) and ends > time.time()
