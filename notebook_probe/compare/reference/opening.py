"""Finding the references that a user names: paths, patterns, runs, or rows of a table of runs."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike, fspath
from typing import Any, TypeAlias

from notebook_probe.errors import ProbeError, RecordFormatError, RecordWarning
from notebook_probe.record.read.many import matching
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.record.store.location import local_path
from notebook_probe.record.views.xarray_views import RunSource

__all__ = ["MOST", "References", "absolute", "opened_references"]

MOST = 4
"""Largest number of references: a fifth hardly narrows the band, and each is read."""

References: TypeAlias = str | PathLike[str] | RunSource | Iterable[Any]


def opened_references(given: References, this: str = "") -> tuple[RunSource, ...]:
    """Return the references that are named, opened, without the run at location ``this``.

    Parameters
    ----------
    given : path, pattern, Source, or iterable of these
        A pattern is such as ``"runs/good-*.zarr"``. Rows of a table of runs count by their
        ``run``, their location.

    Raises
    ------
    RecordFormatError
        There is no record.
    TypeError
        For what is no run.

    Warns
    -----
    RecordWarning
        A record cannot be read, or there are more than four: the first four are taken.
    """
    found: dict[str, RunSource] = {}
    failed: list[str] = []
    for one in _each(given):
        if isinstance(one, str):
            found |= _opened(matching(one), failed)
        else:
            found[one.location] = one
    runs = [run for run in found.values() if absolute(run.location) != absolute(this)]
    if not runs:
        why = "; ".join(failed) or "no record exists there"
        raise RecordFormatError(f"reference={given!r}: {why}")
    for why in failed:
        warnings.warn(f"left out: {why}", RecordWarning, stacklevel=3)
    if len(runs) > MOST:
        names = ", ".join(run.name for run in runs[:MOST])
        text = f"{len(runs)} references, of which the first {MOST} are taken: {names}"
        warnings.warn(text, RecordWarning, stacklevel=3)
    return tuple(runs[:MOST])


def _each(given: Any) -> Iterator[str | RunSource]:
    """Yield locations and patterns as text, and runs."""
    if isinstance(given, str | PathLike):
        yield fspath(given)
    elif hasattr(given, "streams") and hasattr(given, "snapshot"):
        yield given
    elif isinstance(given, Mapping) and "run" in given:
        yield str(given["run"])
    elif isinstance(given, Iterable) and not isinstance(given, Mapping):
        for one in given:
            yield from _each(one)
    else:
        raise TypeError(
            f"reference={given!r}: a path, a pattern such as 'runs/good-*.zarr', a run or an "
            f"opened record, or several of these are expected"
        )


def absolute(location: str) -> str:
    """Return a location that is valid in any working folder."""
    path = local_path(location)
    return location if path is None else str(path.absolute())


def _opened(places: Iterable[str], failed: list[str]) -> dict[str, RunSource]:
    """Return the records by their locations; append why others cannot be read."""
    found: dict[str, RunSource] = {}
    for place in places:
        try:
            found[place] = OpenedRecord(place)
        except (ProbeError, OSError) as error:
            failed.append(str(error))
    return found
