"""Frame of the result of a user's view: a picture, values for its ES module, or nothing."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

from notebook_probe.errors import ViewError
from notebook_probe.explorer.draw.packed import packed
from notebook_probe.explorer.messages.frames import DrawnFrame, Frame
from notebook_probe.explorer.messages.wire import VERSION

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["frame_of"]


def frame_of(returned: object, name: str, esm: str, width: int, pixel_ratio: float) -> Frame:
    """Return the message that shows it in the panel.

    Raises
    ------
    ViewError
        It is not a Figure, a dict with a module to draw it, or None.
    """
    message: DrawnFrame = {"v": VERSION, "type": "drawn", "seq": 0, "view": name, "form": "nothing"}
    if returned is None:
        return message, []
    if _is_figure(returned):
        from notebook_probe.explorer.draw.rendered import png

        content, height = png(returned, width, pixel_ratio)
        message |= {"form": "image", "width": width, "height": height}
        return message, [memoryview(content)]
    if isinstance(returned, Mapping) and esm:
        data, arrays, buffers = packed(returned)
        return {**message, "form": "data", "data": data, "arrays": arrays}, buffers
    raise ViewError(f"{name!r} returned {_words(returned)}; {_allowed(esm)}")


def _is_figure(returned: object) -> TypeGuard[Figure]:
    """Return whether this is a matplotlib figure, without importing matplotlib."""
    # If matplotlib was never imported, it can be no figure.
    loaded = sys.modules.get("matplotlib.figure")
    return loaded is not None and isinstance(returned, loaded.Figure)


def _words(returned: Any) -> str:
    return f"{type(returned).__name__} {returned!r:.60}"


def _allowed(esm: str) -> str:
    data = "a dict" if esm else "a dict (if it has an ES module: nbp.view(name, esm=...))"
    return f"a view returns a matplotlib Figure, {data} or None"
