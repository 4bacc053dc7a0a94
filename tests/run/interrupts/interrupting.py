"""An interrupt at one chosen instruction of the package's own code.

As with Ctrl-C, the signal only trips a flag there, and CPython calls its handler where it next
looks: behind a call, at a jump back, at the beginning of a function. So the function that trips
it must run no instruction of Python itself: it is one of C, which is made the trace function of
the frames that run. An exception raised by a trace function comes at places where no signal is
ever handled, such as between a ``with`` block and its end.

In a section that defers signals, one at one line has the same effect as one at any other, so only
one in `SAMPLE` of these lines counts.
"""

from __future__ import annotations

import ctypes
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import notebook_probe
from notebook_probe.uninterrupted import uninterrupted

__all__ = ["InterruptAt", "count", "interrupted"]

PACKAGE = str(Path(notebook_probe.__file__).parent)
NEVER = sys.maxsize
SAMPLE = 100
DEFERRED = type(uninterrupted)._note.__code__

_prototype = ctypes.PYFUNCTYPE(None, *[ctypes.py_object] * 3)
_trip: Any = _prototype(("PyErr_SetInterrupt", ctypes.pythonapi))
"""Takes what a trace function takes."""


class InterruptAt:
    """Send SIGINT at the ``n``-th counted line that this thread runs inside the package.

    Parameters
    ----------
    n : int
        From 1; `NEVER` only counts.
    opcodes : bool
        Count instructions instead of lines.

    Attributes
    ----------
    count : int
        Lines, or instructions, that have been counted.
    where : str
        The line at which the KeyboardInterrupt was raised; empty while none was.
    """

    def __init__(self, n: int = NEVER, *, opcodes: bool = False) -> None:
        self._n, self._event = n, "opcode" if opcodes else "line"
        self._n_deferred = 0
        self._before: Any = None
        self.count, self.where = 0, ""

    def __enter__(self) -> InterruptAt:
        self._before = signal.signal(signal.SIGINT, self._raise)
        sys.settrace(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)  # the last signal may come before

    def end(self) -> None:
        """Put back the handler of the signal, once none can come any more."""
        sys.settrace(None)
        ours = signal.signal(signal.SIGINT, self._before)
        assert ours == self._raise, "the handler of the signal was not put back"

    @property
    def _comes_next(self) -> bool:
        return self.count >= self._n - 1

    def _called(self, frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code is DEFERRED:
            self._disarm(frame)
        if not frame.f_code.co_filename.startswith(PACKAGE) or frame.f_code is DEFERRED:
            return None
        frame.f_trace_opcodes = self._event == "opcode"
        return _trip if self._comes_next else self._ran

    def _ran(self, frame: FrameType, event: str, _: object) -> Any:
        if event != self._event or not self._counts():
            return self._ran
        self.count += 1
        if not self._comes_next:
            return self._ran
        outer = frame.f_back
        while outer is not None:
            if outer.f_trace is not None:
                outer.f_trace = _trip
            outer = outer.f_back
        return _trip

    def _counts(self) -> bool:
        if signal.getsignal(signal.SIGINT) == self._raise:
            return True
        self._n_deferred += 1
        return self._n_deferred % SAMPLE == 1

    def _raise(self, number: int, frame: FrameType | None) -> NoReturn:
        if frame is not None:
            self._disarm(frame)
        raise KeyboardInterrupt

    def _disarm(self, frame: FrameType) -> None:
        """One signal is enough; while the tracing goes on each line trips another."""
        sys.settrace(None)
        self.where = f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"


def count(act: Callable[[], object], *, opcodes: bool = False) -> int:
    """Return at how many points ``act`` can be interrupted; it is called once."""
    with InterruptAt(opcodes=opcodes) as counting:
        act()
    counting.end()
    return counting.count


def interrupted(act: Callable[[], object], n: int, *, opcodes: bool = False) -> str:
    """Call ``act``, interrupted at the ``n``-th point; return where, which may be nowhere."""
    at = InterruptAt(n, opcodes=opcodes)
    try:
        with at:
            act()
    except KeyboardInterrupt:
        assert at.where, "nobody has interrupted it"
    finally:
        at.end()
    return at.where
