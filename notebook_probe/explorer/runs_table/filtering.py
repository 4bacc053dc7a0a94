"""Rows of a table that a typed text selects: a condition, else words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from notebook_probe.errors import ProbeError

__all__ = ["Condition", "Filtered", "filtered"]

Row = Mapping[str, Any]
Condition = Callable[[str], Callable[[Row], bool]]
"""Parser of a condition; raises ValueError or ProbeError for an invalid text."""

MEANT = re.compile(r"[<>=!'\"]")
"""Characters that occur in conditions, not in searches for words."""


@dataclass(frozen=True, slots=True)
class Filtered:
    """Result of a typed text.

    Attributes
    ----------
    kind : str
        ``"condition"``, ``"words"`` (look for it in what the rows say), or ``"problem"``.
    rows : tuple of int
        Places of the rows that fulfil a condition.
    problem : str
        Reason why a condition cannot be parsed.
    """

    kind: str
    rows: tuple[int, ...] = ()
    problem: str = ""


def filtered(text: str, rows: Iterable[Row], condition: Condition) -> Filtered:
    """Return the rows that fulfil a condition, or that it is words, or what is wrong with it.

    Examples
    --------
    >>> def condition(text):
    ...     name, _, value = text.partition(" == ")
    ...     if not value:
    ...         raise ValueError(f"no comparison in {text!r}")
    ...     return lambda row: str(row.get(name)) == value
    >>> filtered("lr == 2", [{"lr": 1}, {"lr": 2}], condition).rows
    (1,)
    >>> filtered("adam", [], condition).kind, filtered("lr <", [], condition).problem
    ('words', "no comparison in 'lr <'")
    """
    try:
        is_wanted = condition(text)
        return Filtered("condition", tuple(at for at, row in enumerate(rows) if is_wanted(row)))
    except (ProbeError, ValueError, TypeError) as error:
        return Filtered("problem", problem=str(error)) if MEANT.search(text) else Filtered("words")
