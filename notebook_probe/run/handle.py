"""What attaching returns."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from notebook_probe.model.selectors import standard_place

if TYPE_CHECKING:
    from notebook_probe.probes.step.probe import Probe
    from notebook_probe.run.attach.attachment import Attachment

__all__ = ["Handle"]


class Detaches(Protocol):
    """The run of a handle."""

    @property
    def closed(self) -> bool: ...
    def detach(self, handle: Handle) -> None: ...


class Handle:
    """Probes that were attached together; ``remove()`` takes them off, at the next step boundary.

    Removing twice, or after the run was closed, does nothing. As a context manager it removes
    itself at the end.

    Attributes
    ----------
    skipped : tuple of str
        Selected modules where the quantity does not fit, each with its reason.
    """

    def __init__(self, run: Detaches, attachment: Attachment) -> None:
        self._run: Callable[[], Detaches | None] = weakref.ref(run)
        self._attachment = attachment
        self.skipped = attachment.skipped

    @property
    def probes(self) -> tuple[Probe, ...]:
        """Those attached, and those that modules added later have brought."""
        return tuple(self._attachment.probes)

    def remove(self) -> None:
        run, self._run = self._run(), lambda: None
        if run is not None and not run.closed:
            run.detach(self)

    def __enter__(self) -> Handle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def __repr__(self) -> str:
        places = [*dict.fromkeys(standard_place(probe.place) for probe in self.probes)]
        names = dict.fromkeys(probe.quantity.name for probe in self.probes)
        where = places[0] if len(places) == 1 else f"{len(places)} modules"
        left = f", {len(self.skipped)} skipped" if self.skipped else ""
        return f"<Handle {', '.join(names)} at {where}{left}>"
