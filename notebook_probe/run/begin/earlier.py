"""Runs of this process: the active one, the replaced ones, and protected records."""

from __future__ import annotations

import shutil
import weakref
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from itertools import count
from pathlib import Path

from torch import nn

from notebook_probe.errors import RecordFormatError, RecordMismatchError
from notebook_probe.model.unwrapped import unwrap
from notebook_probe.record.read.reader import open_record
from notebook_probe.record.store.location import Location, below, is_unused, local_path
from notebook_probe.record.store.lock import Lock
from notebook_probe.record.write.closing import losses_as_warnings
from notebook_probe.run.ending import wait_for_ends
from notebook_probe.run.run import Run

__all__ = [
    "close_earlier",
    "give_way",
    "last_run",
    "note",
    "place_for",
    "remove_record",
    "run_of",
]

# Weak keys: a run that is dropped ends, and must not be kept by this table.
_asked: MutableMapping[Run, str] = weakref.WeakKeyDictionary()
"""Requested location of each run, which differs if an earlier model was recorded there."""
_recorded: dict[str, tuple[weakref.ref[nn.Module], str]] = {}
"""Last recorded model and its location, by requested and by actual location."""
_giving_way: MutableMapping[Run, Callable[[Run], None]] = weakref.WeakKeyDictionary()
"""Runs that end when another one begins to watch their model, and what to call then."""


def give_way(run: Run, replaced: Callable[[Run], None]) -> None:
    """Call ``replaced`` with the next run of the same model, once, which may be recorded anywhere.

    For a run that the program has not asked for: its own replaces it.
    """
    _giving_way[run] = replaced


def note(run: Run, model: nn.Module, asked: Location) -> None:
    """Keep in mind where a run was to be recorded, and of which model the record is."""
    for other, replaced in list(_giving_way.items()):
        if other.controls.watches(model):
            del _giving_way[other]
            replaced(run)
    _asked[run] = _resolved(asked)
    for place in (_resolved(asked), _resolved(run.location)):
        _recorded[place] = weakref.ref(model), run.location


def close_earlier(model: nn.Module, asked: Location, fresh: bool) -> None:
    """Close a run that a new one replaces: of the same store, or the model's last fresh one.

    A run whose model was collected is being closed already, on another thread: wait for that.
    """
    here = _resolved(asked)
    # A copy, as closing may remove entries, on another thread as well.
    for run, place in list(_asked.items()):
        same_store = here in (place, _resolved(run.location))
        if same_store or (fresh and not run.closed and run.controls.is_replaced_by(model)):
            with losses_as_warnings():  # the new run is not to blame
                run.close()
    wait_for_ends()


def run_of(model: nn.Module) -> Run | None:
    """Return the run that watches a model, the last of several."""
    model = unwrap(model)
    runs = [run for run in list(_asked) if not run.closed and run.controls.watches(model)]
    return runs[-1] if runs else None


def last_run() -> Run | None:
    """Return the open run of this process that began last."""
    runs = [run for run in list(_asked) if not run.closed]
    return runs[-1] if runs else None


def place_for(model: nn.Module, store: Location, rank: str) -> Location:
    """Return the location for a model's record: ``store``, or a new one next to it.

    Parameters
    ----------
    rank : str
        The folder of this process in the folder of its job; empty if it is alone.

    Raises
    ------
    RecordMismatchError
        An earlier model was recorded there, and the store is no folder of this machine.
    """
    asked = below(store, rank) if rank else store
    earlier, place = _recorded.get(_resolved(asked), (None, ""))
    if earlier is None:
        return asked
    if earlier() is model:
        return asked if _resolved(asked) == _resolved(place) else Path(place)
    return _fresh_place(store, rank) if _has_rows(asked) else asked


def _has_rows(location: Location) -> bool:
    with suppress(RecordFormatError):  # it no longer exists
        return any(stream.n_rows for stream in open_record(location).paths.values())
    return False


def _fresh_place(store: Location, rank: str) -> Location:
    """Return the numbered folder next to ``store`` in which nothing is recorded yet."""
    path = local_path(store)
    if path is None:
        raise RecordMismatchError(
            f"{store} has the record of an earlier model; resume=True continues it, another "
            f"store begins a record for this one"
        )
    numbered = (path.with_name(f"{path.stem}-{n}{path.suffix}") for n in count(2))
    place = next(place for place in numbered if not (place / rank).exists())
    return place / rank


def remove_record(location: Location) -> None:
    """Remove a record; nothing else is ever removed.

    Raises
    ------
    ValueError
        The place is no folder of this machine.
    RecordFormatError, RecordLockedError
        Something else is there, or another process writes it.
    """
    path = local_path(location)
    if path is None:
        raise ValueError(f"overwrite=True of {location}; only a folder of this machine is removed")
    if not path.exists() or (path.is_dir() and is_unused(path)):
        return
    # Raises for anything that is no record, before a single file is removed.
    open_record(path)
    # A running writer holds the lock: its record is not removed under it.
    lock = Lock(path)
    try:
        shutil.rmtree(path)
    finally:
        lock.release()


def _resolved(location: Location) -> str:
    path = local_path(location)
    return str(location if path is None else Path(path).resolve())
