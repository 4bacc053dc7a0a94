"""Hearing what is written to a text stream, without taking the stream's place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["StreamTap"]

DEEPEST = 8
"""Wrappers of other programs above a tap, through which it is looked for."""


class StreamTap:
    """Call a function with what is written to a stream, after the stream has taken it.

    The stream keeps its identity: only its ``write`` is wrapped, on the object. So progress bars
    and log handlers that hold it are heard, too, and another program may put itself before it.

    Parameters
    ----------
    stream : text stream
        Stream such as ``sys.stdout``, which a notebook's kernel has replaced.
    hear : callable
        Called with each text, on the thread that writes; its errors are ignored.

    Raises
    ------
    AttributeError, TypeError
        For a stream whose ``write`` cannot be wrapped.
    """

    def __init__(self, stream: Any, hear: Callable[[str], object]) -> None:
        self.stream = stream
        self._hear: Callable[[str], object] | None = hear
        _forget_closed(stream)
        self._before = vars(stream).get("write")
        write = stream.write

        def heard(*args: Any, **kwargs: Any) -> Any:
            written = write(*args, **kwargs)
            try:
                if self._hear is not None:
                    self._hear(args[0])
            except Exception:  # a print of the user must not fail
                return written
            return written

        heard.tap = self  # type: ignore[attr-defined]  # how a later one recognizes it
        self._heard = heard
        stream.write = heard

    def close(self) -> None:
        """Stop; the stream gets its ``write`` back, unless another wrapper stands before it."""
        self._hear = None
        _forget_closed(self.stream)

    @property
    def is_heard(self) -> bool:
        """True if the stream's ``write`` still leads here.

        IPython wraps ``write`` itself during a cell, and restores at its end what it found.
        """
        return _leads_to(vars(self.stream).get("write"), self._heard, DEEPEST)

    @property
    def is_off(self) -> bool:
        return self._hear is None

    def put_back(self) -> None:
        """Give the stream the ``write`` from before this tap."""
        if self._before is None:
            del self.stream.write
        else:
            self.stream.write = self._before


def _forget_closed(stream: Any) -> None:
    """Take off the closed taps that stand first; one below another wrapper waits for its turn."""
    while True:
        tap = getattr(vars(stream).get("write"), "tap", None)
        if not (isinstance(tap, StreamTap) and tap.is_off):
            return
        tap.put_back()


def _leads_to(write: Any, heard: Any, depth: int) -> bool:
    """Return whether a function is ``heard``, or one that it closes over leads there."""
    if write is heard:
        return True
    cells = getattr(write, "__closure__", None) or ()
    inside = [cell.cell_contents for cell in cells if depth and not _is_empty(cell)]
    return any(_leads_to(one, heard, depth - 1) for one in inside if callable(one))


def _is_empty(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018  raises where nothing is in it
    except ValueError:
        return True
    return False
