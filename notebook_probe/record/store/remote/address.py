"""Parsing of a store: a URL, a zarr Store, an icechunk repository, with options or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from zarr.abc.store import Store
from zarr.storage import ObjectStore

from notebook_probe.errors import ProbeError, RecordFormatError, RecordWriteError, first_line
from notebook_probe.record.store.location import Location, RemoteStore, local_path, new_folder
from notebook_probe.record.store.place import LocalRecordFolder, RecordFolder
from notebook_probe.record.store.remote.engine import Engine
from notebook_probe.record.store.remote.icechunk import IcechunkEngine
from notebook_probe.record.store.remote.objects import ObjectEngine
from notebook_probe.record.store.remote.shipped_place import ShippedPlace
from notebook_probe.record.store.remote.spool import spool_of
from notebook_probe.record.store.remote.stores import StoreEngine
from notebook_probe.registry import Registry

__all__ = ["engine_of", "place_of", "store_schemes"]


store_schemes: Registry[Callable[[str, Mapping[str, Any]], Any]] = Registry(
    "scheme of a store", "notebook_probe.stores"
)
"""``scheme://`` to a function of (url, options): a zarr Store, an obstore store or an `Engine`."""


def engine_of(store: RemoteStore) -> Engine:
    """Return the engine that writes to ``store``.

    Raises
    ------
    UnknownNameError
        A URL with an unregistered scheme.
    MissingExtraError
        The package that opens it is missing; the message names the extra.
    RecordFormatError
        It cannot be opened with these options.
    """
    target = store.store
    if not isinstance(target, str):
        return _engine(target, str(target))
    url = target if "://" in target else Path(target).expanduser().absolute().as_uri()
    opens = store_schemes[url.partition("://")[0]]
    try:
        return _engine(opens(url, store.options), url)
    except ProbeError:
        raise
    except Exception as error:
        raise RecordFormatError(f"cannot open {url}: {first_line(error)}") from error


def is_location(target: object) -> bool:
    """Return whether a record may be there: a path, a URL, or a store of a kind that is known."""
    kind = type(target).__module__.partition(".")[0]
    known = isinstance(target, str | PathLike | Store | RemoteStore | Engine)
    return known or kind in ("obstore", "icechunk")


def place_of(location: Location) -> RecordFolder:
    """Return the place where a writer puts the record for ``location``.

    Raises
    ------
    RecordLockedError, RecordFormatError, RecordWriteError
        It is in use, contains something else, or cannot be reached.
    """
    path = local_path(location)
    if path is not None:
        return LocalRecordFolder(new_folder(path))
    store = location if isinstance(location, RemoteStore) else RemoteStore(location)
    engine = engine_of(store)
    name = engine.name if isinstance(store.store, str) else ""  # an object is in this process alone
    every_s = engine.every_s if store.every_s is None else store.every_s
    return ShippedPlace(engine, spool_of(name, store.spool), every_s)


def _engine(target: Any, name: str) -> Engine:
    kind = type(target).__module__.partition(".")[0]
    if isinstance(target, ObjectStore):  # zarr's, around one of obstore
        return ObjectEngine(target.store, name)
    if isinstance(target, Store):
        return StoreEngine(target, name)
    if kind == "obstore":
        return ObjectEngine(target, name)
    if kind == "icechunk":  # a Repository
        return IcechunkEngine(target, name)
    if isinstance(target, Engine):
        return target
    raise RecordWriteError(
        f"cannot record to a {type(target).__name__}; a path, a URL, a zarr Store, an obstore "
        "store or an icechunk Repository is expected"
    )
