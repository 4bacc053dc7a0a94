"""Import of old runs: each becomes a record, and its own files stay as they are."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from notebook_probe.errors import ProbeError, RecordFormatError
from notebook_probe.old_runs.finding import find_old_run, old_runs_in
from notebook_probe.old_runs.record import attrs_of, write_record
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.record.store.location import ROOT_KEY

__all__ = ["ImportedRun", "import_runs", "old_runs_below"]

_ODD = re.compile(r"[^\w\-.]+", re.ASCII)
LONGEST_NAME = 80


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """Result of the import of one run.

    Attributes
    ----------
    source : Path
        Location of the old run.
    target : Path, optional
        Record of the imported run; None if it was not imported.
    text : str
        Outcome in words.
    """

    source: Path
    target: Path | None
    text: str


def old_runs_below(path: Path) -> Iterator[Path]:
    """Yield the locations of the old runs at a path, or in the folders below it."""
    if not path.is_dir():
        yield path
        return
    for above, folders, names in os.walk(path):
        if ROOT_KEY in names:
            folders.clear()
            continue
        folders.sort()
        yield from old_runs_in(above, folders, sorted(names))


def import_runs(paths: Iterable[Path], to: Path) -> Iterator[ImportedRun]:
    """Write the old runs at these paths as records into a folder, one by one.

    A run that was imported before is not imported again.

    Yields
    ------
    ImportedRun
        Also for a run that cannot be read: the others are imported.

    Raises
    ------
    RecordFormatError
        No old run is at one of the paths.
    """
    for path in paths:
        n = 0
        for n, source in enumerate(old_runs_below(path), 1):  # noqa: B007
            try:
                yield _imported(source, to)
            except (ProbeError, OSError) as error:
                yield ImportedRun(source, None, str(error))
        if not n:
            raise RecordFormatError(f"no run of another tool is in {path}")


def _imported(source: Path, to: Path) -> ImportedRun:
    place = find_old_run(source)
    if place is None:
        raise RecordFormatError(f"no run of another tool is at {source}")
    run, original = place.read(), str(source.absolute())
    run_id = attrs_of(run, original)["run_id"]
    name = _ODD.sub("-", run.name or source.stem).strip("-.")[:LONGEST_NAME] or "run"
    n = 1
    while (target := to / (f"{name}.zarr" if n == 1 else f"{name}-{n}.zarr")).exists():
        if OpenedRecord(target).attrs.get("run_id") == run_id:
            return ImportedRun(source, target, "was imported before")
        n += 1
    write_record(run, target, original)
    return ImportedRun(source, target, "; ".join(run.remarks) or "imported")
