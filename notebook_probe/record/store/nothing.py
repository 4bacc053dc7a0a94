"""Error text for a location without a record: what is there, or close to it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from zipfile import ZipFile, is_zipfile

from notebook_probe.errors import near
from notebook_probe.record.store.location import ROOT_KEY
from notebook_probe.record.store.other_tools import is_run_of_other_tool

__all__ = ["nothing_at"]

MOST_SEEN = 1000
"""Maximum entries of a folder that are read: it may be any folder."""


def nothing_at(location: str, folder: Path | None) -> str:
    """Describe what is at a location without a record; ``folder`` is its local path, if any."""
    said = f"no record at {location}"
    if folder is None:
        return said
    if folder.is_file():
        return f"{said}{_of_file(folder)}"
    if folder.is_dir():
        inside = [repr(str(folder / name)) for name in _records_in(folder)]
        return f"{said}; it contains {', '.join(inside[:4])}" if inside else said
    if not folder.parent.is_dir():
        return f"{said}: there is no folder {folder.parent.absolute()}"
    beside = [*_records_in(folder.parent)]
    there = f" in {folder.parent.absolute()}"
    return f"{said}{there}; {near(folder.name, beside)}" if beside else f"{said}{there}"


def _of_file(file: Path) -> str:
    """Return what is wrong with a file that may have been meant as a packed record."""
    if file.suffix != ".zip":
        return ""
    if not is_zipfile(file):
        return "; it is no zip file, or an incomplete one"
    with ZipFile(file) as packed:
        roots = [name for name in packed.namelist() if name.endswith(f"/{ROOT_KEY}")]
    if not roots:
        return ""
    outermost = min(roots, key=len).removesuffix(f"/{ROOT_KEY}")
    return f"; it contains the folder {outermost!r}: unpack it, or pack a record with run.pack()"


def _records_in(folder: Path) -> Iterator[str]:
    try:
        found = sorted(islice(folder.iterdir(), MOST_SEEN))
        yield from (one.name for one in found if _may_be_record(one))
    except OSError:  # not ours to read
        return


def _may_be_record(place: Path) -> bool:
    is_record = place.name.endswith(".zarr.zip") or (place / ROOT_KEY).exists()
    return is_record or is_run_of_other_tool(place)
