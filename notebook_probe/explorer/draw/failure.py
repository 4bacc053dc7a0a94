"""Errors of a user's view, shown in its place."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path

from notebook_probe.errors import ProbeError

__all__ = ["LastFailure"]

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class LastFailure:
    """Text of the last exception; empty if there was none."""

    text: str = ""
    where: str = ""
    """Line of the view that raised it."""
    count: int = 0
    """Consecutive failures."""

    def followed_by(self, error: BaseException) -> LastFailure:
        """Return the failure after this one, with the count of failures in a row."""
        named = str(error) if isinstance(error, ProbeError) else f"{type(error).__name__}: {error}"
        return LastFailure(named, _line(error), self.count + 1)


def _line(error: BaseException) -> str:
    """Return the first line below our own call; deeper calls are left out."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [place for place, one in enumerate(frames) if Path(one.filename).parent == HERE]
    called = frames[ours[-1] + 1 :] if ours else frames
    if not called:
        return ""
    file = Path(called[0].filename)
    of = f" of {file.name}" if file.exists() else ""  # a cell of a notebook has no file
    return f"line {called[0].lineno}{of}: {called[0].line}"
