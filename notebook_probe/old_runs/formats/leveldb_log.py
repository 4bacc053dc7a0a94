"""LevelDB's log as W&B writes it: blocks of 32 KiB, records in pieces, a checksum of each."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

from notebook_probe.old_runs.allowance import Allowance, SpentError

__all__ = ["FILE_HEAD", "entries_of", "is_wandb"]

FILE_HEAD = struct.Struct("<4sHB")
BLOCK = 1 << 15
PIECE = struct.Struct("<IHB")
FULL, FIRST, MIDDLE, LAST = 1, 2, 3, 4
LONGEST = 64 << 20


def is_wandb(head: bytes) -> bool:
    """Return whether bytes start like a file of W&B, version 0."""
    return head[: FILE_HEAD.size] == FILE_HEAD.pack(b":W&B", 0xBEE1, 0)


def entries_of(path: Path, allowance: Allowance) -> Iterator[bytes]:
    """Yield the records of a file, up to the first one that is damaged or not complete.

    Raises
    ------
    SpentError
        It says at which byte, and why, reading stops before the end.
    """
    parts: list[bytes] = []
    n_parts = 0
    for at, kind, data in _pieces(path, allowance):
        if kind in (FULL, FIRST) and parts:
            raise SpentError(f"the record before byte {at:,} is not complete")
        if kind in (MIDDLE, LAST) and not parts:
            raise SpentError(f"the record at byte {at:,} has no beginning")
        parts.append(data)
        n_parts += len(data)
        if n_parts > LONGEST:
            raise SpentError(f"the record before byte {at:,} is longer than {LONGEST >> 20} MiB")
        if kind in (FULL, LAST):
            yield b"".join(parts)
            parts, n_parts = [], 0
    if parts:
        raise SpentError("its last record is not complete")


def _pieces(path: Path, allowance: Allowance) -> Iterator[tuple[int, int, bytes]]:
    """Yield the place, kind and data of each piece."""
    start = 0
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            allowance.take_bytes(len(block))
            at = FILE_HEAD.size if not start else 0
            while at + PIECE.size <= len(block):
                crc, length, kind = PIECE.unpack_from(block, at)
                end = at + PIECE.size + length
                if not kind and not length:
                    break  # wrong padding of old versions: the record continues in the next block
                if end > len(block):
                    if len(block) < BLOCK:
                        raise SpentError(
                            f"its last record, at byte {start + at:,}, is not complete"
                        )
                    raise SpentError(
                        f"the record at byte {start + at:,} is damaged: it leaves its block"
                    )
                data = block[at + PIECE.size : end]
                if crc != zlib.crc32(data, zlib.crc32(bytes([kind]))):
                    raise SpentError(
                        f"the record at byte {start + at:,} is damaged: its checksum differs"
                    )
                if kind not in (FULL, FIRST, MIDDLE, LAST):
                    raise SpentError(
                        f"the record at byte {start + at:,} is of the unknown kind {kind}"
                    )
                yield start + at, kind, data
                at = end
            start += len(block)
