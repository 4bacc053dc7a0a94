"""Messages from a view, read once: a typed message comes out, or one clear sentence.

The shape of each message is read from its declaration in `from_view` or in its part; nothing
behind checks types a second time. It runs in the widget's thread, before a click is queued: a long
list of names is checked without a call for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Any, Literal, TypedDict, cast, get_args, get_origin, get_type_hints

from notebook_probe.errors import ProbeError, near
from notebook_probe.explorer.messages import from_view, wire
from notebook_probe.explorer.parts.all_parts import SHAPES

__all__ = ["MessageError", "Ping", "parse"]


class MessageError(ProbeError, ValueError):
    """A message from a view that this version cannot read."""


class Ping(TypedDict):
    """The self-test of the route, sent by the kernel to itself."""

    v: int
    type: Literal["ping"]
    token: str


_SHAPES: dict[str, type] = {
    "hello": from_view.Hello,
    "visible": from_view.Visible,
    "viewport": from_view.Viewport,
    "ack": from_view.Ack,
    "selection": wire.SelectionMessage,
    "attach": from_view.AttachClick,
    "detach": from_view.DetachClick,
    "control": from_view.ControlClick,
    "compiled": from_view.CompiledClick,
    "budget": from_view.BudgetClick,
    "export": from_view.ExportClick,
    "fold": from_view.FoldClick,
    "pointed": from_view.Pointed,
    "ping": Ping,
    **SHAPES,
}


def parse(content: object) -> from_view.FromView | Ping:
    """Parse the message in ``content``, with tuples where `wire` declares tuples.

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
    message: dict[str, object] = {"v": wire.VERSION, "type": kind}
    for name, declared in _FIELDS[kind]:
        message[name] = _read(content.get(name), declared, f"{kind}.{name}")
    return cast("from_view.FromView | Ping", message)


def _fields(shape: type) -> tuple[tuple[str, Any], ...]:
    """All but version and type."""
    hints = get_type_hints(shape)
    return tuple((name, hint) for name, hint in hints.items() if name not in ("v", "type"))


def _read(value: object, declared: Any, where: str) -> object:
    """``value`` as the declared type, which is one of the few that `wire` uses."""
    origin, inner = get_origin(declared), get_args(declared)
    if origin is None and (type(value) is declared or _is_number(value, declared)):
        return value
    if origin is Literal and value in inner:
        return value
    if origin is UnionType:
        return _read_union(value, inner, where)
    if origin is list and isinstance(value, list):
        if {*map(type, value)} <= {inner[0]}:
            return value
        return [_read(item, inner[0], where) for item in value]
    if origin is dict and isinstance(value, dict) and {*map(type, value)} <= {inner[0]}:
        return {key: _read(item, inner[1], where) for key, item in value.items()}
    if origin is tuple and isinstance(value, list | tuple) and len(value) == len(inner):
        return tuple(_read(item, kind, where) for item, kind in zip(value, inner, strict=True))
    raise MessageError(f"{where} of a view's message is {value!r}, not {_words(declared)}")


def _read_union(value: object, kinds: tuple[Any, ...], where: str) -> object:
    if value is None and type(None) in kinds:
        return None
    return _read(value, next(kind for kind in kinds if kind is not type(None)), where)


def _is_number(value: object, declared: Any) -> bool:
    """JSON writes 3.0 as 3."""
    return declared is float and type(value) is int


def _words(declared: Any) -> str:
    return declared.__name__ if isinstance(declared, type) else str(declared)


_FIELDS = {kind: _fields(shape) for kind, shape in _SHAPES.items()}
"""Computed once, so that a click costs none of it."""
