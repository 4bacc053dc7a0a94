"""Text of a record for a terminal, which must not obey it."""

from __future__ import annotations

__all__ = ["counted", "printable"]


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless there is one.

    Examples
    --------
    >>> counted(1, "step"), counted(0, "step"), counted(2, "row")
    ('1 step', '0 steps', '2 rows')
    """
    return f"{n} {noun}{'' if n == 1 else 's'}"


def printable(text: str) -> str:
    r"""Return a line without characters that move the cursor, change colors, or cannot be written.

    Examples
    --------
    >>> printable("  fc1\n"), printable("\x1b[31mred") == "�[31mred"
    ('  fc1 ', True)
    """
    return "".join(one if one.isprintable() else _instead_of(one) for one in text)


def _instead_of(character: str) -> str:
    return " " if character.isspace() else "\N{REPLACEMENT CHARACTER}"
