"""Byte budget of each stream of a collector."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from notebook_probe.errors import RecordWarning

__all__ = ["ByteCounter"]

FRAME = 16
"""Bytes of a block in addition to its values."""
SHARE = 32
"""A block is refused that takes more than one in so many of the free bytes of the disk."""


class ByteCounter:
    """Counter of the bytes passed to the record, by stream.

    A stream ends permanently with the first block that has no room, with one warning; the others
    continue.

    Parameters
    ----------
    most : int or None
        Maximum bytes of each stream, before compression.
    free : callable
        ``free()`` returns the free bytes of the record's disk.

    Examples
    --------
    >>> budget = ByteCounter(100, free=lambda: 1 << 30)
    >>> budget.takes("loss", 4), budget.takes("loss", 64), budget.used("loss")
    (True, True, 100)
    """

    def __init__(self, most: int | None, free: Callable[[], int]) -> None:
        self._most, self._free = most, free
        self._used: dict[str, int] = {}
        self._ended: set[str] = set()

    def used(self, stream: str) -> int:
        """Return the bytes used by a stream."""
        return self._used.get(stream, 0)

    def takes(self, stream: str, n_bytes: int) -> bool:
        """Count a block of bytes; return False if it does not fit, or the stream has ended."""
        if stream in self._ended:
            return False
        block, used = n_bytes + FRAME, self.used(stream)
        why = self._refusal(block, used)
        if not why:
            self._used[stream] = used + block
            return True
        self._ended.add(stream)
        warnings.warn(
            f"nothing more is collected of {stream!r}: {why}; everything else continues",
            RecordWarning,
            stacklevel=2,
        )
        return False

    def _refusal(self, block: int, used: int) -> str:
        if self._most is not None and used + block > self._most:
            return f"{used} bytes and {block} more are above max_file_size={self._most}"
        # Asked at each block, as other processes fill the disk, too.
        try:
            free = self._free()
        except OSError:  # the folder or its disk was removed: the writer reports it
            return ""
        if block * SHARE > free:
            return f"{block} bytes are more than one in {SHARE} of the {free} that are free"
        return ""
