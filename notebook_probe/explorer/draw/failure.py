"""What went wrong in somebody's view, as it is shown in its place."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from pathlib import Path

from notebook_probe.errors import ProbeError

__all__ = ["Failure"]

HERE = Path(__file__).parent


@dataclass(frozen=True, slots=True)
class Failure:
    """The last exception in words; without one there is no text."""

    text: str = ""
    where: str = ""
    """Line of the view that raised it."""
    count: int = 0
    """In a row."""

    def followed_by(self, error: BaseException) -> Failure:
        """The next one."""
        named = str(error) if isinstance(error, ProbeError) else f"{type(error).__name__}: {error}"
        return Failure(named, _line(error), self.count + 1)


def _line(error: BaseException) -> str:
    """The line in what we called; what it called in turn is left out."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [place for place, one in enumerate(frames) if Path(one.filename).parent == HERE]
    called = frames[ours[-1] + 1 :] if ours else frames
    if not called:
        return ""
    file = Path(called[0].filename)
    of = f" of {file.name}" if file.exists() else ""  # a cell of a notebook has no file
    return f"line {called[0].lineno}{of}: {called[0].line}"
