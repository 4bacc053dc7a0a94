"""Records below a folder or the URL of a store: of ranks, of hosts, of any writer."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from notebook_probe.catalogues.finding.place import RecordLocation
from notebook_probe.old_runs import old_runs_in
from notebook_probe.record.store.location import (
    ROOT_KEY,
    Location,
    RemoteStore,
    local_path,
)
from notebook_probe.record.store.location import (
    below as placed_below,
)
from notebook_probe.record.store.remote import engine_of
from notebook_probe.record.store.remote.engine import top_of

__all__ = ["below"]

PACKED = ".zip"
DEEPEST = 8
AT_ONCE = 8


def below(root: Location) -> list[RecordLocation]:
    """Every place below a root that looks like a record's; nothing inside of a record is looked at.

    Raises
    ------
    OSError, ProbeError
        The root cannot be read.
    """
    folder = local_path(root)
    if folder is None:
        return _in_store(root if isinstance(root, RemoteStore) else RemoteStore(root))
    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}")
    return [RecordLocation(str(path)) for path in _in_folder(folder.resolve())]


def _in_folder(root: Path) -> Iterator[Path]:
    for above, folders, files in os.walk(root):
        if ROOT_KEY in files:
            folders.clear()
            yield Path(above)
            continue
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from old_runs_in(above, folders, files)
        yield from (Path(above, name) for name in files if name.endswith(PACKED))


def _in_store(root: RemoteStore) -> list[RecordLocation]:
    """Return the records below a prefix, found level by level."""
    found: list[RecordLocation] = []
    level = [root]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for _ in range(DEEPEST):
            deeper: list[RemoteStore] = []
            for place, names in zip(level, pool.map(_names, level), strict=True):
                if ROOT_KEY in names:
                    found.append(RecordLocation(place if place.options else str(place.store)))
                else:
                    folders = (one.rstrip("/") for one in names if one.endswith("/"))
                    kept = (one for one in folders if one and not one.startswith("."))
                    deeper += [_inside(place, one) for one in kept]
            level = deeper
    return found


def _inside(place: RemoteStore, name: str) -> RemoteStore:
    inside = placed_below(place, name)
    assert isinstance(inside, RemoteStore)
    return inside


def _names(place: RemoteStore) -> list[str]:
    return [*top_of(engine_of(place))]
