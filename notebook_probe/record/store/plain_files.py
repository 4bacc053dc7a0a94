"""Reading of untrusted folders: plain files, none larger than a chunk can be."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from typing import Any

from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import LocalStore

from notebook_probe.errors import RecordFormatError

__all__ = ["MOST_BYTES", "PlainFiles"]

MOST_BYTES = 2**28
"""Maximum size of one file: far more than any chunk, far less than the memory."""


class PlainFiles(LocalStore):
    """A folder in which no pipe is waited for, no device is read and no endless file."""

    def get_sync(self, key: str, **wanted: Any) -> Buffer | None:
        self._check(key)
        return super().get_sync(key, **wanted)

    def bytes_of(self, key: str) -> bytes | None:
        """Return the bytes under ``key``; None if there is no file of that name."""
        self._check(key)
        try:
            with open(f"{self.root}/{key}", "rb", buffering=0) as file:  # noqa: PTH123  many, small
                return file.readall()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            return None

    async def get(self, key: str, *wanted: Any, **named: Any) -> Buffer | None:
        self._check(key)
        return await super().get(key, *wanted, **named)

    async def get_partial_values(
        self, prototype: BufferPrototype, key_ranges: Iterable[tuple[str, Any]]
    ) -> list[Buffer | None]:
        ranges = list(key_ranges)
        for key, _ in ranges:
            self._check(key)
        return await super().get_partial_values(prototype, ranges)

    def _check(self, key: str) -> None:
        path = f"{self.root}/{key}"
        try:
            found = os.stat(path)  # noqa: PTH116  joining paths takes longer
        except OSError:  # opening it raises it again
            return
        if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
            raise RecordFormatError(f"{path} is no plain file")
        if found.st_size > MOST_BYTES:
            raise RecordFormatError(f"{path} has {found.st_size} bytes; at most {MOST_BYTES}")
