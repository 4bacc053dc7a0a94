"""A track: the probes of one phase, what of them is due now, and the frame that is open."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from typing import TypeAlias

from notebook_probe.probes.due.accounts import ProbeAccounts
from notebook_probe.probes.due.interval import Interval
from notebook_probe.probes.due.readings import DueFrame, Readings
from notebook_probe.probes.due.rhythm import FORESIGHT, Rhythm, grouped
from notebook_probe.probes.due.turns import Turns
from notebook_probe.probes.step.budget import Budget
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.plain_mode import plain_mode
from notebook_probe.probes.step.probe import Probe
from notebook_probe.probes.step.step_values import read_at_end
from notebook_probe.schedules import Schedule, restart
from notebook_probe.uninterrupted import whole

__all__ = ["DueProbes"]

Due: TypeAlias = frozenset[int]
"""Numbers of groups: the probes of one schedule that are measured at one of several due steps."""

NEVER = -1, -1, -1, -1

NOTHING: Due = frozenset()


class DueProbes:
    """Set of all probes, which asks every schedule once per step.

    Parameters
    ----------
    build : callable
        Works out the readings of the due probes.
    publish : callable
        Receives each closed frame.
    budget : Budget
        May make schedules due less often, to stay inside a budget.

    Attributes
    ----------
    rests : range
        Steps of which it is known that nothing is due, so that no schedule is asked.
    closed_s : float
        Duration of the closed steps since the probes last changed.
    at_rest : Readings or None
        Readings of a step in which nothing is due, if there was such a step and it reads nothing.
    """

    def __init__(
        self,
        build: Callable[[tuple[Probe, ...], tuple[Probe, ...]], Readings],
        publish: Callable[[StepFrame], None],
        budget: Budget,
    ) -> None:
        self.probes: tuple[Probe, ...] = ()
        self.frame: DueFrame | None = None
        self.last_step = -1
        """Step of the frame that was closed last."""
        self._build, self._publish, self._budget = build, publish, budget
        self._accounts = ProbeAccounts(self._read)
        self._factors = budget.factors
        self._rhythms: tuple[Rhythm, ...] = ()
        self._groups: dict[Probe, int] = {}
        self._has_failed = False
        """A schedule has raised: it may be that its probes are measured no more."""
        self._working: list[Schedule] = []  # those that keep time and were due when asked last
        self._measured: dict[int, tuple[int, ...]] = {}
        self._readings: dict[Due, Readings] = {}
        self._built: dict[tuple[tuple[Probe, ...], tuple[Probe, ...]], Readings] = {}
        self.at_rest: Readings | None = None
        self._costs_before: dict[Probe, float] = {}
        self._due: tuple[int, Due] | None = None
        self.rests = range(0)
        self._open: Due = NOTHING
        self.closed_s = 0.0
        budget.account(self._accounts)
        self.interval = Interval()
        """Since the loop has said that a step is over."""

    @property
    def is_to_regroup(self) -> bool:
        """True if the budget has changed its factors since probes were grouped."""
        return self._budget.factors is not self._factors

    def limit(self, percent: float | None) -> None:
        """Limit the cost to ``percent`` of step time; None measures every due step.

        Raises
        ------
        ValueError
            For anything but a positive number or None.
        """
        self._budget.set_limit(percent)

    def note_graphs(self) -> None:
        """Note that compiled graphs have read what was due."""
        self._budget.note_graphs()

    def set_probes(self, probes: Iterable[Probe]) -> None:
        """Measure exactly these from the next step on."""
        self.probes, self._built = tuple(probes), {}
        self._budget.begin_anew()
        self.leave_out_disabled()

    def leave_out_disabled(self) -> None:
        """Ask and read no more for a probe that has failed too often."""
        self._due = None
        self._group()

    def _group(self) -> None:
        """Group what is due together; factors of the budget separate schedules and places."""
        factor, self._factors = self._budget.factor, self._budget.factors
        self._has_failed = False
        live = [probe for probe in self.probes if not probe.disabled]
        turns = Turns(probe.place for probe in live if probe.can_stretch)
        self._budget.n_turns = turns.n
        for probe in live:
            probe.every = factor(probe)
            probe.turn = turns.turn(probe.place, probe.every)
        self._rhythms, self._groups = grouped(live)
        self._measured, self._open = {}, NOTHING
        self.rests = range(0)
        self._accounts.keep_only(live)
        self.begin_anew()

    def begin_anew(self) -> None:
        """Recompute the readings from the next step on."""
        # Once for all accounts: of thousands of modules it takes a tenth of a second.
        spent = {readings: readings.seconds() for readings in self._read()}
        self._accounts.settle(spent)
        self._costs_before = self._costs(spent)
        self._readings, self.closed_s = {}, 0.0
        self.at_rest = None

    def take_windows(self) -> None:
        """Measure with the windows that the probes have now, which may have been replaced."""
        self._built = {}
        self.begin_anew()

    def forget_replays(self) -> None:
        """Compare with nothing that was read of an earlier batch."""
        for probe in self.probes:
            if "replay" in probe.moments:
                probe.windows.clear()
                probe.begins_late = False
        self.take_windows()

    def open(self, step: int, prepare: Callable[[Readings], None]) -> DueFrame:
        """Open a frame for ``step``, once it is decided and prepared what is due."""
        self._open = self._due_groups(step)
        begun = time.perf_counter()
        is_new = self._open not in self._readings
        frame = self._readings_of(self._open).frame(step)
        if is_new:
            frame.planned = time.perf_counter() - begun
        self.interval.join(frame)
        prepare(frame.plan)
        self.at_rest = frame.plan if frame.plan.are_none else self.at_rest
        self.frame = frame  # only now: who is interrupted before opens it again
        return frame

    def measure_whole(self, step: int) -> range:
        """Measure what is due from ``step`` on for a few steps, whatever the budget; return them.

        Called between two steps. Empty where nothing is left out, or where it is not paid for.
        """
        is_decided = self._due is not None and self._due[0] == step
        whole = self._budget.buy(step + is_decided)
        if whole:
            self._end_rest(whole.start)
        return whole

    def open_whole(self, step: int, only: Collection[Probe] | None = None) -> DueFrame:
        """Open a frame that reads every probe of a single step, whatever its schedule."""
        wanted = self.probes if only is None else [one for one in self.probes if one in only]
        live = (probe for probe in wanted if not probe.disabled)
        of_one = tuple(
            probe for probe in live if not (probe.quantity.spans_steps or probe.quantity.is_of_step)
        )
        self.frame = self._build(of_one, ()).frame(step)
        return self.frame

    @whole
    def close(self) -> None:
        """Close the open frame and publish it."""
        frame = self.frame
        if frame is not None:
            self.last_step, self._accounts.step = frame.step, frame.step + 1
            for group in self._open:
                self._measured[group] = *self._measured.get(group, NEVER)[1:], frame.step
            self.hand(self._publish)
            if self._working and (self._due is None or self._due[0] <= frame.step):
                self._restart_clocks()  # else it was done before

    def drop(self) -> None:
        """Close the open frame and publish nothing of it."""
        frame, self.frame = self.frame, None
        if frame is not None:
            frame.close()
            for window in frame.plan.windows:
                window.spoil()

    def close_before(self, step: int) -> None:
        """Close and publish the open frame of an earlier step, if there is one."""
        if self.frame is not None and self.frame.step < step:
            self.close()

    def measured_before(self, probe: Probe) -> int:
        """Return the last step but three that measured a probe, of those since a budget changed.

        The values of later ones may still be on their way: after an event, steps in succession are
        measured. Less than zero before there are four.
        """
        return self._measured.get(self._groups.get(probe, -1), NEVER)[0]

    def hand(self, to: Callable[[StepFrame], None]) -> None:
        """Close the open frame and pass it to ``to``."""
        frame, self.frame = self.frame, None
        if frame is not None:
            begun, readings = time.perf_counter(), frame.plan
            frame.close()
            if readings.at_end:
                read_at_end(frame)
            if readings.windows:
                plain_mode(readings.end_windows, frame, False)
            for probe in readings.due:
                probe.was_due = True
            frame.seconds += time.perf_counter() - begun
            to(frame)
            self.closed_s += time.perf_counter() - frame.begun
            if frame.has_failures:
                self.leave_out_disabled()

    def upcoming(self, step: int) -> Readings:
        """Return the readings of ``step``, whose schedules are asked only once."""
        return self._readings_of(self._due_groups(step))

    def _readings_of(self, due: Due) -> Readings:
        found = self._readings.get(due)
        if found is None:
            groups = self._groups.items()
            probes = tuple(probe for probe, group in groups if group in due)
            others = (probe for probe, group in groups if group not in due)
            sampled = tuple(probe for probe in others if probe.quantity.samples == "every")
            found = self._built.get((probes, sampled))
            if found is None:
                found = self._built[probes, sampled] = self._build(probes, sampled)
            elif all(found is not other for other in self._readings.values()):
                found.forget_costs()  # of a time with other factors
            self._readings[due] = found
        return found

    def costs(self) -> dict[Probe, float]:
        """Seconds per step spent for each probe, since the probes last changed.

        Until a step has ended with them, and permanently at the end of a run, the former costs.
        """
        return self._costs({readings: readings.seconds() for readings in self._read()})

    def _costs(self, spent: Mapping[Readings, Mapping[Probe, float]]) -> dict[Probe, float]:
        n_steps = sum(readings.n_steps for readings in spent)
        if not n_steps:
            return self._costs_before
        return {probe: seconds / n_steps for probe, seconds in _added(spent.values()).items()}

    def _read(self) -> set[Readings]:
        """Return the readings of sets that were due since the probes last changed."""
        return {*self._readings.values()}

    def seconds(self) -> dict[Probe, float]:
        """All that was spent for each probe since the probes last changed."""
        return _added(readings.seconds() for readings in self._read())

    @property
    def wall_s(self) -> float:
        """Duration of the steps since the probes last changed; 0 until one has ended."""
        frame = self.frame
        is_open = self.closed_s and frame is not None
        return self.closed_s + (time.perf_counter() - frame.begun if is_open and frame else 0.0)

    def _due_groups(self, step: int) -> Due:
        known = self._due  # which another thread may drop, as a run is closed
        if known is not None and known[0] == step:
            return known[1]
        if self._budget.factors is not self._factors or self._has_failed:
            self._group()
        if step in self.rests:
            return NOTHING
        if self.rests:
            self._end_rest(step)
        if self._working:
            self._restart_clocks()
        is_whole, due = step in self._budget.whole, list[int]()
        for rhythm in self._rhythms:
            try:
                if rhythm.schedule(step):
                    n_due, rhythm.n_due = rhythm.n_due, rhythm.n_due + 1
                    for every, turns in rhythm.groups.items():
                        if is_whole:
                            due += turns.values()
                        elif n_due % every in turns:
                            due.append(turns[n_due % every])
                    if rhythm.keeps_time:
                        self._working.append(rhythm.schedule)
            except Exception as error:  # a user's callable
                for probe in self._groups:
                    if probe.armed == rhythm.schedule:
                        probe.failed(error, step)
                self._has_failed = True  # groups change at the next step, not in between
        found = frozenset(due)
        self._due = step, found
        if not (found or step + 1 in self._budget.whole):
            self._foresee(step)
        return found

    def _end_rest(self, step: int) -> None:
        """Count the due steps before ``step`` that the budget has skipped; ask from there on."""
        if not self.rests:
            return
        for rhythm in self._rhythms:
            rhythm.n_due += sum(one < step for one in rhythm.skipped)
            rhythm.skipped = []
        self.rests = range(0)

    def _foresee(self, step: int) -> None:
        """Learn for how many steps after this one nothing will be due."""
        with suppress(Exception):  # a user's schedule: it is asked at every step
            ahead = [rhythm.skips(step) for rhythm in self._rhythms]
            end = min([step + FORESIGHT, *(last for _, last in ahead)])
            for rhythm, (skipped, _) in zip(self._rhythms, ahead, strict=True):
                rhythm.skipped = [one for one in skipped if one < end]
            self.rests = range(step, end)

    def _restart_clocks(self) -> None:
        """Restart the due schedules that keep time, whose work is done."""
        working, self._working = self._working, []
        for schedule in working:
            restart(schedule)


def _added(some: Iterable[Mapping[Probe, float]]) -> dict[Probe, float]:
    """Return the seconds of each probe in all of some accounts."""
    found: dict[Probe, float] = {}
    for seconds in some:
        for probe, one in seconds.items():
            found[probe] = found.get(probe, 0.0) + one
    return found
