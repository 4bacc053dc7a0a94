"""Schedules of a run's probes, bound to its known start and end."""

from __future__ import annotations

from collections.abc import Iterable

from notebook_probe.probes.step.probe import Probe
from notebook_probe.schedules import UNBOUND, Bindable, Schedule, Span, bound, is_owed

__all__ = ["ArmedSchedules"]


class ArmedSchedules:
    """Arms equal schedules of probes that were attached together once: they share a state.

    Attributes
    ----------
    span : Span
        Known start and end of the run.
    """

    def __init__(self) -> None:
        self.span = UNBOUND
        self._expected: tuple[int, int] | None = None
        self._armed: dict[tuple[Schedule, int], Schedule] = {}

    def expect(self, start: int, end: int) -> None:
        """Learn at the next boundary from where to where the training goes; from any thread."""
        self._expected = start, end

    @property
    def is_learning(self) -> bool:
        """True if a new end of training has been announced."""
        return self._expected is not None

    def learn(self, step: int) -> bool:
        """Apply the announced end from ``step`` on; return whether anything changed."""
        expected, self._expected = self._expected, None
        if expected is None:
            return False
        start, end = expected
        before = self.span if self.span.start == start else Span(start)
        self.span = before.until(end, since=step)
        return self.span != before

    def owed(self, probes: Iterable[Probe], last: int) -> list[Probe]:
        """Return the probes that should have been due at the last step, had it been known."""
        known: dict[tuple[int, int], bool] = {}  # thousands of probes share a schedule
        owed = []
        for probe in probes:
            key = id(probe.armed), probe.attached_step
            if key not in known:
                try:
                    known[key] = self._is_owed(probe, last)
                except Exception as error:  # a user's callable
                    probe.failed(error, last)
                    continue
            if known[key]:
                owed.append(probe)
        return owed

    def _is_owed(self, probe: Probe, last: int) -> bool:
        span = self.span.came_in(probe.attached_step)
        return isinstance(probe.armed, Bindable) and is_owed(probe.armed, span, last)

    def arm(self, probes: Iterable[Probe]) -> None:
        """Arm the schedules of these probes, and forget all others."""
        armed: dict[tuple[Schedule, int], Schedule] = {}
        for probe in probes:
            key = probe.schedule, probe.attached_step
            if key not in armed:
                span = self.span.came_in(probe.attached_step)
                # What is armed already is bound again, so that it keeps its state.
                armed[key] = bound(self._armed.get(key, probe.schedule), span)
            probe.armed = armed[key]
        self._armed = armed
