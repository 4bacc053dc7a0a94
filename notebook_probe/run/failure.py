"""Failure of a training, as text that outlives the exception."""

from __future__ import annotations

import traceback
from dataclasses import dataclass

__all__ = ["EndReason"]

MOST_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True)
class EndReason:
    """Reason why a training ended.

    Examples
    --------
    >>> EndReason.of(FloatingPointError("loss is nan")).text
    'FloatingPointError: loss is nan'
    """

    text: str
    """The error with the line it came from."""
    traceback: str = ""
    """Traceback as Python prints it; a long one is cut in the middle."""

    @classmethod
    def of(cls, error: BaseException) -> EndReason:
        frames = traceback.extract_tb(error.__traceback__)
        where = f" (line {frames[-1].lineno}, in {frames[-1].name})" if frames else ""
        whole = "".join(traceback.format_exception(error))
        if len(whole) > MOST_CHARACTERS:
            half = MOST_CHARACTERS // 2
            whole = f"{whole[:half]}\n...\n{whole[-half:]}"
        return cls(f"{type(error).__name__}: {error}{where}", whole)
