"""The widget: the browser side as text, and messages in and out."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

import anywidget
import traitlets

from notebook_probe.explorer.assets import css, esm
from notebook_probe.explorer.kernel import widget_lock

__all__ = ["Panel"]

HIDE_PICTURE = """
.jp-OutputArea-child:has(.nbp-panel) + .jp-OutputArea-child { display: none; }
"""
"""The static picture stands right after the panel, for the time when there is no panel."""


class Panel(anywidget.AnyWidget):
    """One panel and all its views; it holds no data, only the way to the browser.

    Parameters
    ----------
    receive : bound method
        Called with the content and the buffers of every message from a view, in whatever thread
        the kernel handles it. Held weakly: ipywidgets keeps every open widget alive.
    """

    _esm = traitlets.Unicode().tag(sync=True)
    _css = traitlets.Unicode().tag(sync=True)

    def __init__(self, receive: Callable[[object], None]) -> None:
        self._receive = weakref.WeakMethod(receive)
        with widget_lock:
            super().__init__(_esm=esm(), _css=css() + HIDE_PICTURE)
            self.on_msg(Panel._arrived)

    def send(self, content: Any, buffers: Sequence[bytes | memoryview] | None = None) -> None:
        """Send a message to every view; nothing happens once the panel is closed."""
        with widget_lock:
            super().send(content, buffers)

    def close(self) -> None:
        """Remove the panel from the page and from the kernel, its layout included."""
        with widget_lock:
            self.layout.close()
            super().close()

    def __repr__(self) -> str:
        """What a reader without widgets shows, above the picture."""
        return "notebook_probe panel"

    def _arrived(self, content: object, buffers: object) -> None:
        receive = self._receive()
        if receive is not None:
            receive(content)
