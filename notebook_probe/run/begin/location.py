"""Location of a new record: its store or a new folder, and the folder of its rank in a job."""

from __future__ import annotations

import re
import time
from os import PathLike
from pathlib import Path

from notebook_probe.record.read.ranks import rank_name
from notebook_probe.record.store.location import Location, below, local_path

__all__ = ["as_location", "from_here", "rank_folder", "record_location"]


def record_location(
    store: Location | PathLike[str] | None, name: str, number: int | None
) -> Location:
    """Return the location of this process's record; without a store, a new folder under runs/."""
    own = rank_folder(number)
    if store is None:
        return _new_folder(name, own and f"-{own}")
    place = as_location(store)
    return below(place, own) if own else place


def as_location(store: Location | PathLike[str]) -> Location:
    """Return a store as a location: a path of any kind as a Path."""
    return Path(store) if isinstance(store, PathLike) else store


def rank_folder(number: int | None) -> str:
    """Return the name of this process's record in that of its job; empty if it is the only one."""
    return "" if number is None else rank_name(number)


def from_here(location: str) -> str:
    """Return the path as one would type it; a URL is not changed."""
    path, here = local_path(location), Path.cwd()
    if path is None:
        return location
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _new_folder(name: str, suffix: str) -> Path:
    """Return a new folder under runs/."""
    stem = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "run"
    base = Path("runs") / f"{stem}-{time.strftime('%Y%m%d-%H%M%S')}{suffix}"
    tries = (base.with_name(f"{base.name}{'' if i == 0 else f'-{i}'}.zarr") for i in range(10_000))
    return next(path for path in tries if not path.exists())
