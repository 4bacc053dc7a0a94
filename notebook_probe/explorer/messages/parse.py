"""The door for messages from a view: a typed message comes out, or one clear sentence.

The shape of each message is read from its declaration in `wire`; nothing behind the door checks
types again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import Any, Literal, TypedDict, cast, get_args, get_origin, get_type_hints

from notebook_probe.errors import ProbeError, near
from notebook_probe.explorer.messages import wire

__all__ = ["MessageError", "Ping", "parse"]


class MessageError(ProbeError, ValueError):
    """A message from a view that this version cannot read."""


class Ping(TypedDict):
    """The self-test of the route, sent by the kernel to itself."""

    v: int
    type: Literal["ping"]
    token: str


_SHAPES: dict[str, type] = {
    "hello": wire.Hello,
    "visible": wire.Visible,
    "viewport": wire.Viewport,
    "ack": wire.Ack,
    "selection": wire.SelectionMessage,
    "attach": wire.AttachAsked,
    "detach": wire.DetachAsked,
    "control": wire.ControlAsked,
    "compiled": wire.CompiledAsked,
    "fold": wire.FoldAsked,
    "export": wire.ExportAsked,
    "ping": Ping,
}


def parse(content: object) -> wire.FromView | Ping:
    """The message ``content`` holds, with tuples where `wire` declares tuples.

    Raises
    ------
    MessageError
        An unknown type or version, or a field that is missing or of another type.
    """
    if not isinstance(content, Mapping):
        raise MessageError(f"a view sent {type(content).__name__}, not a message")
    if content.get("v") != wire.VERSION:
        raise MessageError(
            f"a view speaks version {content.get('v')!r} of the panel's language, the kernel "
            f"{wire.VERSION}: reload the page"
        )
    kind = content.get("type")
    if not isinstance(kind, str) or kind not in _SHAPES:
        raise MessageError(f"a view sent a message of type {kind!r}; {near(str(kind), _SHAPES)}")
    declared = _fields(_SHAPES[kind])
    return cast(
        "wire.FromView | Ping",
        {name: _read(content.get(name), declared[name], f"{kind}.{name}") for name in declared},
    )


@cache
def _fields(shape: type) -> dict[str, Any]:
    return get_type_hints(shape)


def _read(value: object, declared: Any, where: str) -> object:
    """``value`` as the declared type, which is one of the few that `wire` uses."""
    origin, inner = get_origin(declared), get_args(declared)
    if origin is Literal and value in inner:
        return value
    if origin is UnionType:
        return _read_union(value, inner, where)
    if origin is list and isinstance(value, list):
        return [_read(item, inner[0], where) for item in value]
    if origin is dict and isinstance(value, dict):
        return {
            _read(key, inner[0], where): _read(item, inner[1], where) for key, item in value.items()
        }
    if origin is tuple and isinstance(value, list | tuple) and len(value) == len(inner):
        return tuple(_read(item, kind, where) for item, kind in zip(value, inner, strict=True))
    if origin is None and _is_plain(value, declared):
        return value
    raise MessageError(f"{where} of a view's message is {value!r}, not {_words(declared)}")


def _read_union(value: object, kinds: tuple[Any, ...], where: str) -> object:
    if value is None and type(None) in kinds:
        return None
    return _read(value, next(kind for kind in kinds if kind is not type(None)), where)


def _is_plain(value: object, declared: Any) -> bool:
    if declared is float:  # JSON writes 3.0 as 3
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is declared


def _words(declared: Any) -> str:
    return declared.__name__ if isinstance(declared, type) else str(declared)
