"""What one changes of what is measured, beside attaching and detaching."""

from __future__ import annotations

from abc import ABC, abstractmethod

from notebook_probe.model.selectors import Where
from notebook_probe.run.attach.preset_table import typical_percent
from notebook_probe.run.attach.presets import presets
from notebook_probe.run.attach.requests import AttachPreset, Ticket
from notebook_probe.run.health.status import PresetInfo
from notebook_probe.run.parts import RunParts
from notebook_probe.schedules import ScheduleLike

__all__ = ["ProbeActions"]


class ProbeActions(ABC):
    """Schedules of what is attached, presets while it trains, and what all of it may cost."""

    _parts: RunParts

    @property
    @abstractmethod
    def _live(self) -> RunParts:
        """The parts of the run; raises ClosedRunError once it is closed."""

    def reschedule(self, where: Where | None, quantity: str, schedule: ScheduleLike) -> int:
        """Measure what is attached on another schedule, from the next step boundary on.

        The series goes on; a budget stretches it no more, as its schedule is a choice now.

        Parameters
        ----------
        where : str, class, callable, iterable or None
            As in `attach`; None is wherever it is attached, and modules that are added later.
        quantity : str
        schedule : str, int, Schedule or callable

        Returns
        -------
        int
            At how many places it was on another schedule before.

        Raises
        ------
        UnknownNameError
            Nothing of it is attached there.
        ScheduleError
        QuantityError
            It is on this schedule already.
        ClosedRunError

        Examples
        --------
        >>> run.reschedule(None, "effective_rank", "every(50)")  # doctest: +SKIP
        """
        live = self._live
        moved = live.probes.reschedule(where, quantity, schedule)
        live.change_between_steps()
        return moved

    def attach_preset(self, name: str) -> Ticket:
        """Measure what a preset measures, but for what is attached already on any schedule.

        It acts at once when no step is open, else from the next one on; the ticket says what became
        of it. `notebook_probe.list_presets` lists them.

        Raises
        ------
        UnknownNameError, ClosedRunError

        Examples
        --------
        >>> run.attach_preset("spectra")  # doctest: +SKIP
        """
        live = self._live
        return live.put_between_steps(AttachPreset(presets[name].name))

    def preset_infos(self) -> list[PresetInfo]:
        """Every preset, with what it takes of a step where that has been measured.

        Examples
        --------
        >>> [one.name for one in run.preset_infos()][:2]  # doctest: +SKIP
        ['default', 'gradients']
        """
        return [PresetInfo(one.name, one.about, typical_percent(one)) for one in presets.values()]

    def budget(self, percent: float | None) -> None:
        """Stay below ``percent`` of step time: when watching costs more, quantities are stretched.

        Then one of 2, 4, 8, ... due steps is measured of them, the dearest first and norms last,
        at all modules alike; every change is an event of the record and stands in
        ``status().budget``. What was attached with a schedule of its own is measured as asked.
        None measures every due step again.

        Raises
        ------
        ValueError
            For anything but a positive number or None.

        Examples
        --------
        >>> run.budget(2.0)  # doctest: +SKIP
        """
        self._parts.observer.training.limit(percent)
