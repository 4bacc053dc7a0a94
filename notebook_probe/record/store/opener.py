"""Functions that open a record for reading, at any location."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from zarr.abc.store import Store

from notebook_probe.record.store.location import ROOT_KEY, Location, RemoteStore, local_path
from notebook_probe.record.store.other_tools import run_of_other_tool
from notebook_probe.record.store.plain_files import PlainFiles
from notebook_probe.record.store.remote import engine_of
from notebook_probe.record.store.zipped import is_zip, open_zip

__all__ = ["opener"]


def opener(location: Location) -> Callable[[], Store]:
    """Return a function that opens the present record at ``location`` for reading.

    It raises FileNotFoundError if there is none.
    """
    path = local_path(location)
    if path is not None:
        return partial(_open_path, path)
    if isinstance(location, Store):
        return lambda: location
    store = location if isinstance(location, RemoteStore) else RemoteStore(location)
    return engine_of(store).reader


def _open_path(path: Path) -> Store:
    if is_zip(path):
        return open_zip(path)
    if not (path / ROOT_KEY).is_file():  # a pipe of that name would be waited for
        found = run_of_other_tool(path)
        if found is None:
            raise FileNotFoundError(path)
        return found.store()
    return PlainFiles(path, read_only=True)
