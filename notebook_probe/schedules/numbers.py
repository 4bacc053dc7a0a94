"""Numbers as schedules take them and write them, and names of streams made of their text."""

from __future__ import annotations

import math
import re
from zlib import crc32

from notebook_probe.checks import is_number, is_whole
from notebook_probe.errors import ScheduleError

__all__ = ["hashed_name", "integer", "number_text", "real", "stream_name"]

WHOLE_NUMBERS = re.compile(r"[a-z]+\(\d+(?:, \d+)*\)")
LONGEST = 60
EXACT = 2**53
"""Up to here every float that is whole is the integer that it looks like."""


def integer(value: object, where: str) -> int:
    """Return any integer, also numpy's; a bool is refused, though it is an int in Python."""
    if not is_whole(value):
        raise ScheduleError(f"{where}: an integer is expected")
    return int(value)


def real(value: object, where: str) -> float:
    """Return any finite number, also numpy's; a bool is refused."""
    if not (is_number(value) and math.isfinite(value)):
        raise ScheduleError(f"{where}: a finite number is expected")
    return float(value)


def number_text(value: float) -> str:
    """Return a float as text that is read back bit for bit.

    Examples
    --------
    >>> number_text(30.0), number_text(1.2), number_text(1e300)
    ('30', '1.2', '1e+300')
    """
    whole = value.is_integer() and abs(value) < EXACT
    return str(int(value)) if whole else repr(value)


def stream_name(text: str) -> str:
    """Name of a stream for a schedule's text; readable where it has but a few whole numbers.

    Examples
    --------
    >>> stream_name("between(100, 200)"), stream_name("geometric(100, 1.2)")
    ('between_100_200', 'geometric_75bfc113')
    """
    if WHOLE_NUMBERS.fullmatch(text) and len(text) <= LONGEST:
        return "_".join(re.findall(r"\w+", text))
    return hashed_name(text.partition("(")[0], text)


def hashed_name(kind: str, text: str) -> str:
    """Name of a stream by the checksum of a text, the same in every process."""
    return f"{kind}_{crc32(text.encode('utf-8', 'surrogatepass')):08x}"
