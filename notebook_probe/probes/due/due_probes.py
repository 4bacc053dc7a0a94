"""A track: the probes of one phase, what of them is due now, and the frame that is open."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from typing import TypeAlias

from notebook_probe.probes.due.readings import DueFrame, Readings
from notebook_probe.probes.step.budget import Budget
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.interval import Interval
from notebook_probe.probes.step.probe import Probe
from notebook_probe.probes.step.step_values import read_at_end
from notebook_probe.schedules import Schedule, has_clock, restart

__all__ = ["DueProbes"]

Group: TypeAlias = tuple[Schedule, int]
"""Probes of one schedule of which one in so many due steps is measured."""

Due: TypeAlias = frozenset[Group]

NEVER = -1, -1


class DueProbes:
    """Asks every schedule once per step, and keeps one `Readings` for each set of due ones.

    Parameters
    ----------
    build : callable
        Works out the readings of the due probes.
    publish : callable
        Receives each closed frame.
    budget : Budget
        May make schedules due less often, to stay inside a budget.
    """

    def __init__(
        self,
        build: Callable[[tuple[Probe, ...], tuple[Probe, ...]], Readings],
        publish: Callable[[StepFrame], None],
        budget: Budget,
    ) -> None:
        self.probes: tuple[Probe, ...] = ()
        budget.account(self.costs)
        self.frame: DueFrame | None = None
        self.last_step = -1
        """Of the frame that was closed last."""
        self._build, self._publish, self._budget = build, publish, budget
        self._factors = budget.factors
        self._schedules: dict[Schedule, tuple[int, ...]] = {}
        self._groups: dict[Probe, Group] = {}
        self._n_due: dict[Schedule, int] = {}
        self._clocks: frozenset[Schedule] = frozenset()
        self._working: list[Schedule] = []  # those of them that were due in the step asked last
        self._measured: dict[Group, tuple[int, int]] = {}
        self._readings: dict[Due, Readings] = {}
        self._costs_before: dict[Probe, float] = {}
        self._due: tuple[int, Due] | None = None
        self._open: Due = frozenset()
        self._wall_s = 0.0
        self.interval = Interval()
        """Since the loop has said that a step is over."""

    def limit(self, percent: float | None) -> None:
        """Stay below ``percent`` of step time; None measures every due step.

        Raises
        ------
        ValueError
            For anything but a positive number or None.
        """
        self._budget.set_limit(percent)

    def set_probes(self, probes: Iterable[Probe]) -> None:
        """Measure exactly these from the next step on."""
        self.probes = tuple(probes)
        self.leave_out_disabled()

    def leave_out_disabled(self) -> None:
        """Ask and read no more for a probe that has failed too often."""
        self._due = None
        self._group()

    def _group(self) -> None:
        """Keep together what is due together; factors of the budget tell schedules apart."""
        factor, self._factors = self._budget.factor, self._budget.factors
        live = [probe for probe in self.probes if not probe.disabled]
        for probe in live:
            probe.every = factor(probe)
        self._groups = {probe: (probe.armed, probe.every) for probe in live}
        self._measured = {}
        schedules: dict[Schedule, tuple[int, ...]] = {}
        for schedule, every in dict.fromkeys(self._groups.values()):
            schedules[schedule] = (*schedules.get(schedule, ()), every)
        self._schedules, self._n_due = schedules, {}
        self._clocks = frozenset(filter(has_clock, schedules))
        self.begin_anew()

    def begin_anew(self) -> None:
        """Work out what is read anew, from the next step on."""
        self._costs_before, self._readings, self._wall_s = self.costs(), {}, 0.0

    def forget_replays(self) -> None:
        """Compare with nothing that was read of an earlier batch."""
        for probe in self.probes:
            if "replay" in probe.moments:
                probe.windows.clear()
        self.begin_anew()

    def open(self, step: int) -> DueFrame:
        """Open a frame for ``step``; what is due is decided now."""
        self._open = self._due_groups(step)
        self.frame = self._readings_of(self._open).frame(step)
        self.interval.join(self.frame)
        return self.frame

    def open_whole(self, step: int, only: Collection[Probe] | None = None) -> DueFrame:
        """Open a frame in which every probe of a single step is read, whatever its schedule."""
        wanted = self.probes if only is None else [one for one in self.probes if one in only]
        live = (probe for probe in wanted if not probe.disabled)
        of_one = tuple(
            probe for probe in live if not (probe.quantity.spans_steps or probe.quantity.is_of_step)
        )
        self.frame = self._build(of_one, ()).frame(step)
        return self.frame

    def close(self) -> None:
        """Close the open frame and publish it."""
        frame = self.frame
        if frame is not None:
            self.last_step = frame.step
            for group in self._open:
                self._measured[group] = self._measured.get(group, NEVER)[1], frame.step
            self.hand(self._publish)
            if self._working and (self._due is None or self._due[0] <= frame.step):
                self._restart_clocks()  # else it was done before

    def close_before(self, step: int) -> None:
        """Close and publish the open frame of an earlier step, if there is one."""
        if self.frame is not None and self.frame.step < step:
            self.close()

    def measured_before(self, probe: Probe) -> int:
        """The last step but one in which a probe was measured, of those since a budget changed.

        Less than zero before there are two.
        """
        return self._measured.get((probe.armed, probe.every), NEVER)[0]

    def hand(self, to: Callable[[StepFrame], None]) -> None:
        """Close the open frame and hand it to somebody."""
        frame, self.frame = self.frame, None
        if frame is not None:
            begun, readings = time.perf_counter(), frame.readings
            frame.close()
            if readings.at_end:
                read_at_end(frame)
            if readings.windows:
                readings.end_windows(frame, on_host=False)
            for probe in readings.due:
                probe.was_due = True
            frame.seconds += time.perf_counter() - begun
            to(frame)
            self._wall_s += time.perf_counter() - frame.begun
            if frame.has_failures:
                self.leave_out_disabled()

    def upcoming(self, step: int) -> Readings:
        """What will be read in ``step``; its schedules are known only once."""
        return self._readings_of(self._due_groups(step))

    def _readings_of(self, due: Due) -> Readings:
        found = self._readings.get(due)
        if found is None:
            groups = self._groups.items()
            probes = tuple(probe for probe, group in groups if group in due)
            others = (probe for probe, group in groups if group not in due)
            sampled = tuple(probe for probe in others if probe.quantity.samples == "every")
            found = self._readings[due] = self._build(probes, sampled)
        return found

    def costs(self) -> dict[Probe, float]:
        """Seconds per step spent for each probe, since the probes last changed.

        Until a step has ended with them, and for good at the end of a run, what it was before.
        """
        n_steps = sum(readings.n_steps for readings in [*self._readings.values()])
        if not n_steps:
            return self._costs_before
        return {probe: seconds / n_steps for probe, seconds in self.seconds().items()}

    def seconds(self) -> dict[Probe, float]:
        """All that was spent for each probe since the probes last changed."""
        spent: dict[Probe, float] = {}
        for readings in [*self._readings.values()]:
            for probe, seconds in readings.seconds().items():
                spent[probe] = spent.get(probe, 0.0) + seconds
        return spent

    @property
    def wall_s(self) -> float:
        """How long the steps took since the probes last changed; 0 until one has ended."""
        frame = self.frame
        is_open = self._wall_s and frame is not None
        return self._wall_s + (time.perf_counter() - frame.begun if is_open and frame else 0.0)

    def _due_groups(self, step: int) -> Due:
        known = self._due  # which another thread may drop, as a run is closed
        if known is not None and known[0] == step:
            return known[1]
        if self._budget.factors is not self._factors:
            self._group()
        if self._working:
            self._restart_clocks()
        due: list[Group] = []
        for schedule, factors in [*self._schedules.items()]:
            try:
                if schedule(step):
                    n_due = self._n_due.get(schedule, 0)
                    self._n_due[schedule] = n_due + 1
                    self._working += [schedule] if schedule in self._clocks else []
                    due += [(schedule, every) for every in factors if n_due % every == 0]
            except Exception as error:  # a user's callable
                for probe, (its, _) in self._groups.items():
                    if its == schedule:
                        probe.failed(error, step)
                self.leave_out_disabled()
        found = frozenset(due)
        self._due = step, found
        return found

    def _restart_clocks(self) -> None:
        """The work is done for which schedules were due that keep time."""
        working, self._working = self._working, []
        for schedule in working:
            restart(schedule)
