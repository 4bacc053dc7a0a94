"""The views of a panel: which are visible, their widths, and the frames they have painted."""

from __future__ import annotations

from dataclasses import dataclass

from notebook_probe.explorer.messages.from_view import Ack, Viewport

__all__ = ["ViewsPresent"]

DEFAULT_WIDTH = 700
PATIENCE_S = 1.0
"""Seconds after which the next frame is sent without an acknowledgment.

Acknowledgments may be stuck behind a cell, or lost with a page that was reloaded.
"""


@dataclass(slots=True)
class _Sent:
    seq: int
    at_s: float


class ViewsPresent:
    """The views known to one panel; its owner guards it with a lock."""

    def __init__(self) -> None:
        self._visible: dict[str, bool] = {}
        self._viewports: dict[str, Viewport] = {}
        self._waiting: dict[str, _Sent] = {}
        self._seq = 0
        self.expected = False
        """A view is on its way but cannot say hello before the cell ends."""

    @property
    def present(self) -> bool:
        """True if any view is visible."""
        return any(self._visible.values()) if self._visible else self.expected

    @property
    def is_blind(self) -> bool:
        """True if the visible views cannot confirm what has arrived."""
        return self.expected and not self._visible

    def came(self, view: str) -> None:
        """Note a new view, which has no frame yet: nothing is waited for."""
        self._visible[view] = True
        self._waiting.clear()

    def seen(self, view: str, visible: bool) -> None:
        self._visible[view] = visible

    def resized(self, viewport: Viewport) -> None:
        self._viewports[viewport["view"]] = viewport

    def shows(self, kind: str) -> bool:
        """Return whether a view shows this kind of frame, or may do so without saying it."""
        return any(kind in one["widths"] for one in self._seen) or not self._visible

    def width(self, kind: str) -> int:
        """Pixels of the widest visible view of this kind."""
        # The widest decides: a narrow view can thin a frame, a wide one cannot make up points.
        widths = [one["widths"].get(kind, DEFAULT_WIDTH) for one in self._seen]
        return max(widths, default=DEFAULT_WIDTH)

    @property
    def pixel_ratio(self) -> float:
        """Pixels per CSS pixel of the sharpest screen that shows a view."""
        return max((one["pixel_ratio"] for one in self._seen), default=1.0)

    @property
    def _seen(self) -> list[Viewport]:
        return [one for view, one in self._viewports.items() if self._visible.get(view)]

    def ready(self, kind: str, now_s: float) -> bool:
        """Return whether the last frame of this kind was painted, or is no longer waited for."""
        sent = self._waiting.get(kind)
        return sent is None or now_s - sent.at_s > PATIENCE_S

    def waits_for(self, kind: str) -> bool:
        """Return whether the last frame of this kind may not have arrived."""
        return kind in self._waiting

    def sends(self, kind: str, now_s: float) -> int:
        """Return the number of the frame to send."""
        self._seq += 1
        self._waiting[kind] = _Sent(self._seq, now_s)
        return self._seq

    def painted(self, ack: Ack) -> None:
        for kind, seq in ack["painted"].items():
            sent = self._waiting.get(kind)
            # A later frame replaces the earlier one, so its painting confirms both.
            if sent is not None and seq >= sent.seq:
                del self._waiting[kind]
