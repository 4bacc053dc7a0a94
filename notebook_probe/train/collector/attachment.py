"""Handle of an attached collector."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["CollectorAttachment"]


class CollectorAttachment:
    """A collector on its target; ``remove()`` takes it off, and as a context manager its end does.

    Removing twice does nothing. Values of a step that is not complete are dropped.

    Parameters
    ----------
    detach : callable
    target : str
        Class of the target, as text.
    """

    def __init__(self, detach: Callable[[], None], target: str) -> None:
        self._detach: Callable[[], None] | None = detach
        self._target = target

    def remove(self) -> None:
        detach, self._detach = self._detach, None
        if detach is not None:
            detach()

    def __enter__(self) -> CollectorAttachment:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        removed = ", removed" if self._detach is None else ""
        return f"<Attachment to {self._target}{removed}>"
