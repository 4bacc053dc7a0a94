"""The parts that an attribute holds: itself, or what it lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from notebook_probe.summary.dataset_graph.kinds import is_known, kind_of

__all__ = ["MOST_OF_ONE", "is_part", "parts_in"]

MOST_OF_ONE = 32
"""Parts, and settings, of one object."""


def is_part(name: str, held: object) -> bool:
    """Return whether an attribute is a part, or a list of parts; else it is a setting."""
    return kind_of(name, held) is not None or _lists_parts(name, held)


def parts_in(name: str, held: object) -> Iterator[tuple[str, object]]:
    """Role and value of each; functions among transforms are parts, too."""
    if _lists_parts(name, held):
        yield from ((f"{name}[{key}]", one) for key, one in _listed(held) if one is not None)
    elif kind_of(name, held) is not None:
        yield name, held


def _lists_parts(name: str, held: object) -> bool:
    """Return whether a value lists parts; in a long list only datasets count.

    A list of a thousand samples, each an object, is a setting.
    """
    listed = [one for _, one in _listed(held)]
    if len(listed) > MOST_OF_ONE:
        return is_known(listed[0])
    return any(kind_of(name, one) is not None for one in listed)


def _listed(held: Any) -> Iterable[tuple[Any, Any]]:
    if type(held) in (list, tuple):
        return enumerate(held)
    return held.items() if type(held) is dict and all(type(key) is str for key in held) else ()
