"""Messages from a view, read once: a typed message comes out, or one clear sentence.

The shape of each message is read from its declaration in `from_view` or in its part; nothing
behind checks types a second time. It runs in the widget's thread, before a click is queued: a long
list of names is checked without a call for each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypedDict, cast, get_type_hints

from notebook_probe.errors import near
from notebook_probe.explorer.declared import MessageError, read_declared
from notebook_probe.explorer.messages import from_view, wire
from notebook_probe.explorer.parts.all_parts import SHAPES

__all__ = ["MessageError", "Ping", "parse"]


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
    "moved": from_view.Moved,
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
        where = f"{kind}.{name} of a view's message"
        message[name] = read_declared(content.get(name), declared, where)
    return cast("from_view.FromView | Ping", message)


def _fields(shape: type) -> tuple[tuple[str, Any], ...]:
    """All but version and type."""
    hints = get_type_hints(shape)
    return tuple((name, hint) for name, hint in hints.items() if name not in ("v", "type"))


_FIELDS = {kind: _fields(shape) for kind, shape in _SHAPES.items()}
"""Computed once, so that a click costs none of it."""
