"""TFRecord: length, its checksum, data, their checksum."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

import google_crc32c

from notebook_probe.old_runs.allowance import Allowance, SpentError

__all__ = ["is_first_record", "records_of"]

HEAD = struct.Struct("<QI")
TAIL = struct.Struct("<I")
LONGEST = 64 << 20
"""Longest record that is read; longer ones are images or graphs."""
MASK = 0xA282EAD8


def is_first_record(head: bytes) -> bool:
    """Return whether bytes start like a file of records: with a length and its checksum."""
    return len(head) >= HEAD.size and _is_length(head[: HEAD.size])


def records_of(path: Path, allowance: Allowance) -> Iterator[bytes]:
    """Yield the records of a file, up to the first one that is damaged or not complete.

    Raises
    ------
    SpentError
        It says at which byte, and why, reading stops before the end.
    """
    at = 0
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        while head := file.read(HEAD.size):
            if len(head) < HEAD.size or size - at < HEAD.size:
                raise SpentError(f"its last record, at byte {at:,}, is not complete")
            if not _is_length(head):
                raise SpentError(
                    f"the record at byte {at:,} is damaged: its length has another checksum"
                )
            length = HEAD.unpack(head)[0]
            end = at + HEAD.size + length + TAIL.size
            if end > size:
                raise SpentError(f"its last record, at byte {at:,}, is not complete")
            allowance.take_bytes(HEAD.size + (0 if length > LONGEST else length))
            if length > LONGEST:
                file.seek(end)
            else:
                data, tail = file.read(length), file.read(TAIL.size)
                if len(tail) < TAIL.size or TAIL.unpack(tail)[0] != _masked(data):
                    raise SpentError(f"the record at byte {at:,} is damaged: its checksum differs")
                yield data
            at = end


def _is_length(head: bytes) -> bool:
    return bool(HEAD.unpack(head)[1] == _masked(head[:8]))


def _masked(data: bytes) -> int:
    """Return the checksum as TFRecord stores it, so that one of checksums is no fixed point."""
    crc = google_crc32c.value(data)
    return ((crc >> 15 | crc << 17) + MASK) & 0xFFFFFFFF
