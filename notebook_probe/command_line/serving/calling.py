"""Run a command in this process, several at once, each with the output it would have alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from contextvars import ContextVar
from dataclasses import dataclass
from io import StringIO, TextIOBase
from typing import TextIO

__all__ = ["Called", "call", "divided_output"]

WRONG = 2


@dataclass(frozen=True, slots=True)
class Called:
    """Exit code and output of a command."""

    code: int
    out: str
    err: str


_out: ContextVar[StringIO | None] = ContextVar("out", default=None)
_err: ContextVar[StringIO | None] = ContextVar("err", default=None)


class DividedOutput(TextIOBase):
    """Output that goes to the caller's own text, or where it always went."""

    def __init__(self, own: ContextVar[StringIO | None], usual: TextIO) -> None:
        self._own, self._usual = own, usual

    def write(self, text: str) -> int:
        return (self._own.get() or self._usual).write(text)

    def flush(self) -> None:
        if self._own.get() is None:
            self._usual.flush()


@contextmanager
def divided_output(usual: TextIO) -> Iterator[None]:
    """Give each `call` its own stdout and stderr; everything else is written to ``usual``."""
    with (
        redirect_stdout(DividedOutput(_out, usual)),
        redirect_stderr(DividedOutput(_err, usual)),
    ):
        yield


def call(run: Callable[[Sequence[str]], int], words: Sequence[str]) -> Called:
    """Run a command, inside `divided_output`; nothing that it raises is raised here."""
    out, err = StringIO(), StringIO()
    before = _out.set(out), _err.set(err)
    try:
        code = run(words)
    except SystemExit as end:  # of a parser that was given something else
        code = end.code if isinstance(end.code, int) else WRONG
    except Exception as error:
        code = WRONG
        err.write(f"{type(error).__name__}: {error}\n")
    finally:
        _out.reset(before[0])
        _err.reset(before[1])
    return Called(code, out.getvalue(), err.getvalue())
