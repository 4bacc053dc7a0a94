"""A packed record, opened: members are read where they are, nothing is ever extracted."""

from __future__ import annotations

import zipfile
from pathlib import Path

from zarr.core.sync import sync
from zarr.storage import ZipStore

from notebook_probe.errors import RecordFormatError
from notebook_probe.record.store.plain_files import MOST_BYTES

__all__ = ["is_zip", "open_zip"]


def is_zip(path: Path) -> bool:
    """Return whether ``path`` is a zip archive."""
    return path.is_file() and zipfile.is_zipfile(path)


def open_zip(path: Path) -> ZipStore:
    """Return the archive as a zarr Store.

    Raises
    ------
    RecordFormatError
        A member is encrypted, duplicate, or too large for a record's.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise RecordFormatError(f"{path} is not a record: {error}") from error
    names: set[str] = set()
    for member in members:
        if member.file_size > MOST_BYTES or member.flag_bits & 1 or member.filename in names:
            raise RecordFormatError(
                f"{path} is not a packed record: its member {member.filename[:80]!r} is encrypted, "
                f"there twice, or larger than {MOST_BYTES} bytes"
            )
        names.add(member.filename)
    return sync(ZipStore.open(path, mode="r"))  # one that is not open yet cannot be asked
