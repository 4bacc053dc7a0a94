"""Print answers as text of a bounded length, or as JSON."""

from __future__ import annotations

import math
import re
import textwrap
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from notebook_probe.command_line.asked import count
from notebook_probe.command_line.printed import plain, print_json

__all__ = [
    "add_output",
    "fitting_items",
    "left_line",
    "number",
    "print_answer",
    "seconds",
    "tokens",
    "wrapped",
]

S = TypeVar("S")
T = TypeVar("T")

MOST_TOKENS = 2000
WIDTH, INDENT = 100, "  "
WORDS = re.compile(r"\d{1,3}|[^\W\d_]{1,6}|[^\w\s]|_")
"""Pieces of a text that tokenizers of language models mostly have as one token, or as fewer."""


def add_output(parser: ArgumentParser) -> None:
    """Add the options of the output."""
    parser.add_argument("--json", action="store_true", help="print a JSON object; see nbp schema")
    parser.add_argument(
        "--limit",
        type=count,
        default=MOST_TOKENS,
        metavar="TOKENS",
        help="maximum length of the text, %(default)s by default; 0 for no limit",
    )


def seconds(text: str) -> float:
    """Parse a duration that is finite and not negative."""
    number = float(text)
    if not 0 <= number < math.inf:
        raise ValueError
    return number


def tokens(text: str) -> int:
    """Return about how many tokens a language model reads in a text.

    Examples
    --------
    >>> tokens("step 250: loss_spike at fc1")
    9
    """
    return len(WORDS.findall(text))


def fitting_items(
    names: Sequence[S],
    made: Callable[[S], T | None],
    lines_of: Callable[[T], Iterable[str]],
    limit: int,
    used: int = 0,
    lines: int = 0,
) -> tuple[tuple[T, ...], int]:
    """Make items one after the other until their lines fill a number of tokens, or of lines.

    The first item is always there; those that are None are skipped.

    Parameters
    ----------
    limit : int
        Number of tokens; 0 for no limit.
    used : int
        Tokens of what is printed above.
    lines : int
        Number of lines; 0 for no limit, as without one of tokens.

    Returns
    -------
    tuple
        The items, and the number of names that are left.

    Examples
    --------
    >>> fitting_items([1, 2, 3], lambda n: "word " * n, lambda text: [text], 3)
    (('word ', 'word word '), 1)
    """
    kept: list[T] = []
    n_lines = 0
    for place, name in enumerate(names):
        one = made(name)
        if one is None:
            continue
        own = [*lines_of(one)]
        used += sum(map(tokens, own))
        n_lines += len(own)
        if limit and kept and (used > limit or 0 < lines < n_lines):
            return tuple(kept), len(names) - place
        kept.append(one)
    return tuple(kept), 0


def print_answer(answer: Any, lines: Iterable[str], asked: Namespace) -> None:
    """Print an answer as JSON, or its lines without characters that control a terminal."""
    if asked.json:
        print_json(asdict(answer))
        return
    for line in lines:
        indent = len(line) - len(line.lstrip())
        print(" " * indent + plain(line))


def left_line(left_out: int, what: str) -> Iterator[str]:
    """Yield a line about what was left out, if anything was."""
    if left_out:
        yield f"{left_out} more {what}; --limit 0 prints all"


def number(value: float | None) -> str:
    """Return a value with four significant digits.

    Examples
    --------
    >>> number(0.000123456), number(float("nan")), number(None)
    ('0.0001235', 'nan', '-')
    """
    return "-" if value is None else f"{value:.4g}"


def wrapped(words: Sequence[str]) -> list[str]:
    """Return lines of words, indented."""
    return textwrap.wrap(
        " ".join(words),
        WIDTH,
        initial_indent=INDENT,
        subsequent_indent=INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )
