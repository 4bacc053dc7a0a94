"""Names of fields in conditions, and their spelling in a text."""

from __future__ import annotations

import re

from notebook_probe.errors import QueryError

__all__ = ["ALIASES", "KEYWORDS", "NAME", "asked_as", "field_named", "written"]

ALIASES = {"params": "config"}
"""Other first words: a training from parameters keeps these as its configuration."""

KEYWORDS = frozenset(
    ["and", "or", "not", "in", "is", "has", "missing", "nan", "inf", "true", "false", "none"]
)
NAME = re.compile(r"[^\W\d][\w./:@+-]*")
"""Names that need no backticks."""


def field_named(name: object) -> str:
    """Return the field of a row for a name.

    Raises
    ------
    QueryError
        It is no text, or empty.

    Examples
    --------
    >>> field_named("params.lr"), field_named("best.eval_accuracy")
    ('config.lr', 'best.eval_accuracy')
    """
    if not isinstance(name, str) or not name:
        raise QueryError(f"{name!r} names no field of a run; text such as 'params.lr' is expected")
    first, dot, rest = name.partition(".")
    # Only the first word is translated: `a.params` is another field.
    return f"{ALIASES.get(first, first)}{dot}{rest}" if dot else name


def asked_as(field: str) -> str:
    """Return the other name of a field; the field itself if it has none.

    Examples
    --------
    >>> asked_as("config.lr"), asked_as("steps")
    ('params.lr', 'steps')
    """
    first, dot, rest = field.partition(".")
    others = (alias for alias, name in ALIASES.items() if name == first and dot)
    return next((f"{alias}.{rest}" for alias in others), field)


def written(field: str) -> str:
    """Return a field as it is typed.

    Examples
    --------
    >>> written("config.lr"), written("config.my key"), written("in")
    ('config.lr', '`config.my key`', '`in`')
    """
    if NAME.fullmatch(field) and field.lower() not in KEYWORDS:
        return field
    return "`" + field.replace("`", "``") + "`"
