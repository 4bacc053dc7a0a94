"""Values of JSON as the types that a message declares."""

from __future__ import annotations

from functools import cache
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints, is_typeddict

from notebook_probe.errors import ProbeError

__all__ = ["MessageError", "read_declared"]


class MessageError(ProbeError, ValueError):
    """A message from a view that this version cannot read."""


def read_declared(value: object, declared: Any, where: str) -> object:
    """Return ``value`` as the declared type, which is one of the few that messages use.

    Raises
    ------
    MessageError
        It has another type; ``where`` says which value.

    Examples
    --------
    >>> read_declared([1, 2.5], tuple[float, float], "window")
    (1, 2.5)
    """
    origin, inner = get_origin(declared), get_args(declared)
    if origin is None and (type(value) is declared or _is_number(value, declared)):
        return value
    if origin is Literal and value in inner:
        return value
    if origin is UnionType:
        return _read_union(value, inner, where)
    if origin is list and isinstance(value, list):
        if {*map(type, value)} <= {inner[0]}:  # never of dictionaries that are declared
            return value
        return [read_declared(item, inner[0], where) for item in value]
    if origin is dict and isinstance(value, dict) and {*map(type, value)} <= {inner[0]}:
        return {key: read_declared(item, inner[1], where) for key, item in value.items()}
    if origin is tuple and isinstance(value, list | tuple) and len(value) == len(inner):
        return tuple(
            read_declared(item, kind, where) for item, kind in zip(value, inner, strict=True)
        )
    if is_typeddict(declared) and isinstance(value, dict):
        return {
            name: read_declared(value.get(name), kind, f"{name!r} of {where}")
            for name, kind in _fields_of(declared)
        }
    raise MessageError(f"{where} is {_shown(value)}, not {_words(declared)}")


@cache
def _fields_of(declared: type) -> tuple[tuple[str, Any], ...]:
    return tuple(get_type_hints(declared).items())


def _read_union(value: object, kinds: tuple[Any, ...], where: str) -> object:
    if value is None and type(None) in kinds:
        return None
    return read_declared(value, next(kind for kind in kinds if kind is not type(None)), where)


def _is_number(value: object, declared: Any) -> bool:
    """JSON writes 3.0 as 3."""
    return declared is float and type(value) is int


def _shown(value: object) -> str:
    """Return a single value as it is, of others the type: they may be long, or hold an address."""
    is_single = value is None or isinstance(value, str | int | float)
    return repr(value) if is_single else f"a {type(value).__name__}"


def _words(declared: Any) -> str:
    return declared.__name__ if isinstance(declared, type) else str(declared)
