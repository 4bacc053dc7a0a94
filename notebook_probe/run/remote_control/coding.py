"""Strict conversion between frozen dataclasses and JSON, by their annotations."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from notebook_probe.errors import ProbeError, near

__all__ = ["Coding", "LetterError", "TaggedUnion", "parsed_json"]

T = TypeVar("T")

NOT_FINITE = ("nan", "inf", "-inf")
"""Numbers that JSON does not have, as text."""
LARGEST = 2**63
"""Whole numbers are smaller: converting one of a million digits would take minutes."""
LONGEST_SHOWN = 60


class LetterError(ProbeError, ValueError):
    """A message from another process that is not what was agreed on."""


@dataclass(frozen=True, slots=True)
class TaggedUnion:
    """Classes of which a field holds one; a tag in its JSON says which."""

    tag: str
    members: Mapping[str, type]


class Coding:
    """Conversion of dataclasses to JSON values and back.

    Parameters
    ----------
    unions : mapping
        Annotation to its classes.
    """

    def __init__(self, unions: Mapping[Any, TaggedUnion]) -> None:
        self._unions = unions
        self._tags = {
            kind: (union.tag, name)
            for union in unions.values()
            for name, kind in union.members.items()
        }

    def plain(self, value: Any) -> Any:
        """Return a value as JSON has it.

        Examples
        --------
        >>> Coding({}).plain((1, float("nan")))
        [1, 'nan']
        """
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        if is_dataclass(value) and not isinstance(value, type):
            tag = self._tags.get(type(value))
            of_fields = {one.name: self.plain(getattr(value, one.name)) for one in fields(value)}
            return of_fields if tag is None else {tag[0]: tag[1], **of_fields}
        if isinstance(value, Mapping):
            return {key: self.plain(item) for key, item in value.items()}
        if isinstance(value, Sequence) and not isinstance(value, str):
            return [self.plain(item) for item in value]
        return value

    def read(self, declared: type[T], value: object, where: str) -> T:
        """Return a dataclass from a JSON value.

        Parameters
        ----------
        where : str
            Name of the value, for messages.

        Raises
        ------
        LetterError
            A field is missing, unknown or of another type.
        ProbeError
            The class refuses the values.
        """
        read: T = self._read(declared, value, where)
        return read

    def _read(self, declared: Any, value: object, where: str) -> Any:
        """Convert a JSON value to its declared type."""
        union = self._unions.get(declared)
        if union is not None:
            return self._read_union(union, value, where)
        if is_dataclass(declared):
            return self._read_fields(declared, value, where, ())
        origin, inner = get_origin(declared), get_args(declared)
        if origin in (Union, UnionType):
            return self._read_optional(inner, value, where)
        if origin is Literal and any(value == one and type(value) is type(one) for one in inner):
            return value
        if origin is tuple and isinstance(value, list):
            return tuple(self._read_items(inner, value, where))
        if isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(value, dict):
            return {key: self._read(inner[1], item, where) for key, item in value.items()}
        if isinstance(origin, type) and issubclass(origin, Sequence) and isinstance(value, list):
            return [self._read(inner[0], item, where) for item in value]
        if declared is float and value in NOT_FINITE:
            return float(str(value))
        if _fits(declared, value):
            return value
        raise LetterError(f"{where} is {_shown(value)}, not {_words(declared)}")

    def _read_union(self, union: TaggedUnion, value: object, where: str) -> Any:
        name = value.get(union.tag) if isinstance(value, dict) else None
        if not isinstance(name, str) or name not in union.members:
            known = near(str(name)[:LONGEST_SHOWN], union.members)
            raise LetterError(f"{where} has {union.tag} {_shown(name)}; {known}")
        return self._read_fields(union.members[name], value, where, (union.tag,))

    def _read_fields(self, kind: Any, value: object, where: str, more: tuple[str, ...]) -> Any:
        if not isinstance(value, dict):
            raise LetterError(f"{where} is {_shown(value)}, not an object")
        declared = _fields_of(kind)
        if unknown := next((name for name in value if name not in (*declared, *more)), ""):
            close = near(unknown[:LONGEST_SHOWN], declared)
            raise LetterError(f"{where} has no {_shown(unknown)}; {close}")
        if missing := [
            name for name, (_, needed) in declared.items() if needed and name not in value
        ]:
            raise LetterError(f"{where} lacks {missing[0]!r}")
        return kind(
            **{
                name: self._read(hint, value[name], f"{where}.{name}")
                for name, (hint, _) in declared.items()
                if name in value
            }
        )

    def _read_optional(self, kinds: tuple[Any, ...], value: object, where: str) -> Any:
        if value is None and NoneType in kinds:
            return None
        return self._read(next(one for one in kinds if one is not NoneType), value, where)

    def _read_items(self, kinds: tuple[Any, ...], values: list[Any], where: str) -> list[Any]:
        if kinds[-1] is not Ellipsis and len(values) != len(kinds):
            raise LetterError(f"{where} has {len(values)} values, not {len(kinds)}")
        each = [kinds[0]] * len(values) if kinds[-1] is Ellipsis else kinds
        return [self._read(kind, item, where) for kind, item in zip(each, values, strict=True)]


def parsed_json(content: bytes, where: str) -> dict[str, Any]:
    """Parse a JSON object; NaN and infinity are no JSON.

    Raises
    ------
    LetterError

    Examples
    --------
    >>> parsed_json(b'{"v": 1}', "a letter")
    {'v': 1}
    """
    try:
        found = json.loads(content, parse_constant=_refused, parse_int=_whole)
    # A deeply nested text exhausts the stack of the parser; bytes may be no UTF-8.
    except (ValueError, RecursionError) as error:
        raise LetterError(f"{where} is no JSON: {str(error)[:LONGEST_SHOWN]}") from None
    if not isinstance(found, dict):
        raise LetterError(f"{where} is {_shown(found)}, not an object")
    return found


def _refused(word: str) -> None:
    raise ValueError(f"{word} is not in JSON")


def _whole(digits: str) -> int:
    if len(digits) > len(str(LARGEST)):
        raise ValueError("a number has too many digits")
    return int(digits)


@cache
def _fields_of(kind: type) -> dict[str, tuple[Any, bool]]:
    """Return annotation of each field, and whether it has no default."""
    hints = get_type_hints(kind)
    return {
        one.name: (hints[one.name], one.default is MISSING and one.default_factory is MISSING)
        for one in fields(kind)
    }


def _fits(declared: Any, value: object) -> bool:
    if type(value) is int:
        # JSON writes 3.0 as 3.
        return declared in (int, float) and -LARGEST <= value < LARGEST
    return declared in (str, bool, float) and type(value) is declared


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


def _words(declared: Any) -> str:
    return declared.__name__ if isinstance(declared, type) else str(declared)
