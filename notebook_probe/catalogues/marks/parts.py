"""Parts of a run: a record in a folder, one for each rank of a job, or a packed one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from notebook_probe.catalogues.marks.record_files import (
    StaysError,
    check_packed,
    opened,
    own_files,
    own_ranks,
)
from notebook_probe.errors import ProbeError
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.record.store.location import ROOT_KEY
from notebook_probe.record.store.lock import LOCK_NAME, Lock
from notebook_probe.record.store.noted import forget_place
from notebook_probe.record.store.zipped import is_zip

__all__ = ["RecordPart", "parts_of"]


@dataclass(frozen=True, slots=True)
class RecordPart:
    """One record: a folder, or a packed file."""

    path: Path
    run_id: str

    def opened(self) -> OpenedRecord:
        """Open the record and check that it still is that of the run.

        Raises
        ------
        StaysError
        """
        return opened(self.path, self.run_id)

    def files(self) -> tuple[Path, ...]:
        """Return all files of the record.

        Raises
        ------
        StaysError
            It holds anything else.
        """
        if is_zip(self.path):
            check_packed(self.path)
            return (self.path,)
        return own_files(self.path)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Prevent writing by others inside the context; a packed record is never written.

        Raises
        ------
        StaysError
            A process does, or it is another run's now.
        """
        self.opened()  # before the lock, which must not appear in others' folders
        if is_zip(self.path):
            yield
            return
        try:
            lock = Lock(self.path)
        except (ProbeError, OSError) as error:
            raise StaysError(str(error)) from error
        try:
            yield
        finally:
            lock.release()

    def remove(self, files: tuple[Path, ...]) -> None:
        """Remove these files, the root first, so that no incomplete record is left."""
        for path in sorted(files, key=lambda path: path != self.path / ROOT_KEY):
            if path != self.path / LOCK_NAME:
                path.unlink(missing_ok=True)
        if self.path.is_dir():
            for above, _, _ in os.walk(self.path, topdown=False):
                if Path(above) != self.path:
                    with suppress(OSError):  # something has come into it
                        Path(above).rmdir()
            (self.path / LOCK_NAME).unlink(missing_ok=True)
            self.path.rmdir()
        forget_place(str(self.path))


def parts_of(place: Path, run_id: str) -> tuple[RecordPart, ...]:
    """Return the records of a run; for a job, of each rank, the first of which has this id.

    Raises
    ------
    StaysError
        It is a job whose folder holds anything else.
    """
    ranks = own_ranks(place)
    if not ranks:
        return (RecordPart(place, run_id),)
    first, *others = ranks.values()
    try:
        ids = [str(OpenedRecord(path).attrs.get("run_id") or "") for path in others]
    except (ProbeError, OSError) as error:
        raise StaysError(f"no record that can be read: {error}") from error
    pairs = zip((first, *others), (run_id, *ids), strict=True)
    return tuple(RecordPart(path, one) for path, one in pairs)
