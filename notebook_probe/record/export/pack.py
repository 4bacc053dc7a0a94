"""A record in one file: a zip archive whose members are the record's unchanged files.

They are stored, not compressed again: chunks already are, and a reader finds each at its place.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from notebook_probe.record.store.files import plain_files
from notebook_probe.record.store.location import ROOT_KEY
from notebook_probe.record.store.lock import Lock

__all__ = ["pack"]

TIMELESS = (1980, 1, 1, 0, 0, 0)
"""Equal records make equal archives."""


def pack(folder: Path, target: Path, *, finished: bool) -> None:
    """Write the record in ``folder`` into the zip file ``target``.

    Raises
    ------
    RecordLockedError
        The record is still being written. A record whose writer died can be packed.
    RecordFormatError
        Something in it is not a file or a folder.
    """
    with ExitStack() as stack:
        # A writer could change files while they are read; a finished record has none.
        if not finished:
            stack.callback(Lock(folder).release)
        archive = stack.enter_context(zipfile.ZipFile(target, "w", zipfile.ZIP_STORED))
        for path in _files(folder):
            member = zipfile.ZipInfo(path.relative_to(folder).as_posix(), TIMELESS)
            # Unix permissions are in the upper half; without any, an extracted file could not be
            # opened.
            member.external_attr = 0o644 << 16
            archive.writestr(member, path.read_bytes())


def _files(folder: Path) -> Iterator[Path]:
    """Yield the record's files, the root first; hidden files are the writer's."""
    yield folder / ROOT_KEY
    for path in plain_files(folder):
        if not path.name.startswith(".") and path != folder / ROOT_KEY:
            yield path
