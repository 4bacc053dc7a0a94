"""Locations of other runs: the records of a folder, and what a path or a URL names."""

from __future__ import annotations

from pathlib import Path

from notebook_probe.record.read.ranks import rank_folders
from notebook_probe.record.store.location import ROOT_KEY, Location, local_path
from notebook_probe.record.store.other_tools import is_run_of_other_tool

__all__ = ["first_record", "neighbours", "resolved", "stamp"]


def resolved(location: str) -> str:
    """Return the normalized location: one text for every spelling.

    Examples
    --------
    >>> resolved("runs/../runs/first.zarr") == resolved("runs/first.zarr")
    True
    >>> resolved("s3://bucket/first.zarr")
    's3://bucket/first.zarr'
    """
    path = local_path(location)
    return location if path is None else str(path.expanduser().resolve())


def neighbours(location: str) -> list[str]:
    """Return the records and old runs in the folder of a local one, the last changed first.

    The paths are written as the given one is.

    Raises
    ------
    OSError
        The folder cannot be listed.
    """
    path = local_path(location)
    if path is None:
        return []
    folder = path.parent
    found = [one for one in folder.iterdir() if _is_record(one)]
    return [str(one) for one in sorted(found, key=_changed_ns, reverse=True)]


def first_record(location: str) -> Location:
    """Return the location of a record; for a distributed job, that of its first rank."""
    path = local_path(location)
    place: Location = location if path is None else path.expanduser()
    return next(iter(rank_folders(place).values()), place)


def stamp(location: str) -> int:
    """Return a number that changes with each commit of a local record; 0 elsewhere."""
    path = local_path(location)
    return 0 if path is None else _changed_ns(path.expanduser())


def _is_record(path: Path) -> bool:
    if path.is_file():
        return path.suffixes[-2:] == [".zarr", ".zip"] or is_run_of_other_tool(path)
    is_record = (path / ROOT_KEY).is_file() or bool(path.is_dir() and rank_folders(path))
    return is_record or is_run_of_other_tool(path)


def _changed_ns(path: Path) -> int:
    # The root metadata is replaced at each commit; a zip file changes as a whole.
    for one in (path / ROOT_KEY, path):
        try:
            return one.stat().st_mtime_ns
        except OSError:
            continue
    return 0
