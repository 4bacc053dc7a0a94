"""Which store a user means: a URL, a zarr Store, an icechunk repository, with options or not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from zarr.abc.store import Store
from zarr.storage import ObjectStore

from notebook_probe.errors import ProbeError, RecordFormatError, RecordWriteError
from notebook_probe.record.store.location import Location, RemoteStore, local_path, new_folder
from notebook_probe.record.store.place import LocalPlace, Place
from notebook_probe.record.store.remote.engine import Engine
from notebook_probe.record.store.remote.icechunk import IcechunkEngine
from notebook_probe.record.store.remote.objects import ObjectEngine
from notebook_probe.record.store.remote.shipped_place import ShippedPlace
from notebook_probe.record.store.remote.shipper import first_line
from notebook_probe.record.store.remote.spool import spool_of
from notebook_probe.record.store.remote.stores import StoreEngine
from notebook_probe.registry import Registry

__all__ = ["engine_of", "place_of", "store_schemes"]


store_schemes: Registry[Callable[[str, Mapping[str, Any]], Any]] = Registry(
    "scheme of a store", "notebook_probe.stores"
)
"""``scheme://`` to a function of (url, options): a zarr Store, an obstore store or an `Engine`."""


def engine_of(store: RemoteStore) -> Engine:
    """What writes to ``store``.

    Raises
    ------
    UnknownNameError
        For a URL of a scheme that nobody has registered.
    MissingExtraError
        When the package that opens it is missing; the message says which extra has it.
    RecordFormatError
        When it cannot be opened with these options.
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


def place_of(location: Location) -> Place:
    """Where a writer puts the record that a user wants at ``location``.

    Raises
    ------
    RecordLockedError, RecordFormatError, RecordWriteError
        When it is in use, holds something else, or cannot be reached.
    """
    path = local_path(location)
    if path is not None:
        return LocalPlace(new_folder(path))
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
