"""Handle of attached probes."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from notebook_probe.errors import UnknownNameError
from notebook_probe.model.selectors import standard_place

if TYPE_CHECKING:
    from notebook_probe.probes.step.probe import Probe
    from notebook_probe.run.attach.attachment import Attachment
    from notebook_probe.schedules import ScheduleLike

__all__ = ["Handle"]


class HandleControls(Protocol):
    """Controls of the run of a handle."""

    def reschedule(self, probes: Sequence[Probe], quantity: str, schedule: ScheduleLike) -> int: ...


class HandleOwner(Protocol):
    """The run of a handle.

    `Run`, which imports this module, is one.
    """

    @property
    def closed(self) -> bool: ...
    @property
    def controls(self) -> HandleControls: ...
    def detach(self, handle: Handle) -> None: ...


class Handle:
    """Probes that were attached together; `remove` detaches them, `reschedule` moves them.

    Both act at the next step boundary. Removing twice, or after the run was closed, does nothing.
    As a context manager it removes itself at the end.

    Attributes
    ----------
    skipped : tuple of str
        Selected modules where the quantity does not fit, each with its reason.
    """

    def __init__(self, run: HandleOwner, attachment: Attachment) -> None:
        # A handle in a notebook's history must not keep the run and its model alive.
        self._run: Callable[[], HandleOwner | None] = weakref.ref(run)
        self._attachment = attachment
        self.skipped = attachment.skipped

    @property
    def probes(self) -> tuple[Probe, ...]:
        """Attached probes, including those at modules added later."""
        return tuple(self._attachment.probes)

    def reschedule(self, schedule: ScheduleLike, quantity: str = "") -> int:
        """Measure its probes on another schedule, from the next step boundary on.

        The series continues; the budget no longer reduces its steps, because you chose the
        schedule.

        Parameters
        ----------
        schedule : str, int, Schedule or callable
        quantity : str
            Only this one of its quantities; by default all.

        Returns
        -------
        int
            Number of places where it was on another schedule before.

        Raises
        ------
        UnknownNameError
            No probe of it is attached; the handle was removed.
        ScheduleError
        QuantityError
            The quantity is on this schedule already.
        ClosedRunError

        Examples
        --------
        >>> handle.reschedule("every(50)")  # doctest: +SKIP
        """
        run = self._run()
        if run is None:
            raise UnknownNameError("reschedule: no probe of the handle is attached")
        return run.controls.reschedule(self.probes, quantity, schedule)

    def remove(self) -> None:
        """Remove its probes at the next step boundary."""
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
