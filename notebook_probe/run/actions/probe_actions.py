"""Changes to running measurements: schedules, presets, budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from notebook_probe.errors import QuantityError, shown_as
from notebook_probe.model.selectors import Where
from notebook_probe.run.actions.base import LiveActions
from notebook_probe.run.attach.presets import presets
from notebook_probe.run.attach.requests import AttachPreset, Ticket
from notebook_probe.run.handle import Handle
from notebook_probe.schedules import ScheduleLike

__all__ = ["ProbeActions"]

INCOMPLETE = (
    "reschedule(where, quantity, schedule): a quantity and a schedule are expected; for the handle "
    "attach returned a schedule is enough, reschedule(handle, schedule)"
)


@shown_as("run")
class ProbeActions(LiveActions):
    """Methods that change schedules, attach presets and limit the cost during training."""

    def reschedule(
        self,
        where: Where | Handle | None,
        quantity: str | ScheduleLike = "",
        schedule: ScheduleLike = None,
    ) -> int:
        """Measure attached quantities on another schedule, from the next step boundary on.

        The series continues; the budget no longer reduces its steps, because you chose the
        schedule.

        Parameters
        ----------
        where : str, class, callable, iterable, Handle or None
            Same as in `attach`. None is every place where it is attached, and modules that are
            added later. A handle that `attach` returned selects its probes.
        quantity : str
            Name of the quantity; optional for a handle, whose quantities then all change their
            schedule.
        schedule : str, int, Schedule or callable

        Returns
        -------
        int
            Number of places where it was on another schedule before.

        Raises
        ------
        UnknownNameError
            The quantity is not attached there.
        ScheduleError
        QuantityError
            The quantity is on this schedule already.
        ClosedRunError

        Examples
        --------
        >>> run.reschedule(None, "effective_rank", "every(50)")  # doctest: +SKIP
        >>> run.reschedule(handle, "every(50)")  # doctest: +SKIP
        """
        if isinstance(where, Handle) and schedule is None:
            quantity, schedule = "", quantity or None
        is_complete = isinstance(where, Handle) or bool(quantity)
        if schedule is None or not (isinstance(quantity, str) and is_complete):
            raise QuantityError(INCOMPLETE)
        live = self._live
        if isinstance(where, Handle):
            moved = live.probes.reschedule_probes(where.probes, quantity, schedule)
        else:
            moved = live.probes.reschedule(where, quantity, schedule)
        live.change_between_steps()
        return moved

    def attach_preset(self, name: str) -> Ticket:
        """Attach a preset, except for quantities that are attached already on any schedule.

        It acts at once if no step is open, else from the next step on; the ticket reports the
        result. `notebook_probe.list_presets` lists the presets.

        Raises
        ------
        UnknownNameError, ClosedRunError

        Examples
        --------
        >>> run.attach_preset("spectra")  # doctest: +SKIP
        """
        live = self._live
        return live.put_between_steps(AttachPreset(presets[name].name))

    def state_dict(self) -> dict[str, Any]:
        """Return the state of quantities that depend on earlier steps.

        Store it in your checkpoint, between two steps, and pass it to `load_state_dict` of the run
        that continues. `distance_from_init`, for example, is then measured from the same start. A
        checkpoint of a `Loop` includes it. It contains tensors, numbers, text, and lists and dicts
        of these, so that ``torch.load(..., weights_only=True)`` reads it; state of your window
        quantities of other types is left out.

        Examples
        --------
        >>> torch.save({"model": model.state_dict(), "run": run.state_dict()}, "kept.pt")
        ... # doctest: +SKIP
        """
        return self._live.looking_back.state()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue quantities with a state from `state_dict`, from the next step on.

        The state is used if it was made at the same step. Without it, quantities that depend on
        earlier steps have a gap in a resumed run, and an event names them.

        Raises
        ------
        ClosedRunError

        Examples
        --------
        >>> run = nbp.watch(model, store="runs/digits.zarr", step=1200)  # doctest: +SKIP
        >>> run.load_state_dict(torch.load("kept.pt", weights_only=True)["run"])  # doctest: +SKIP
        """
        self._live.looking_back.take(state)

    def budget(self, percent: float | None) -> None:
        """Limit what watching costs to ``percent`` of step time, by measuring less often.

        Half of it is for measuring, even if the rest of watching costs more. Of the due steps only
        one of 2, 4, 8, ... is then measured, for the most expensive quantities first and for norms
        last; many modules are measured in turns. Every change is an event of the record and shown
        in ``status().budget``. Quantities attached with an explicit schedule are not changed. None
        measures every due step again.

        Raises
        ------
        ValueError
            ``percent`` is neither a positive number nor None.

        Examples
        --------
        >>> run.budget(2.0)  # doctest: +SKIP
        """
        self._parts.observer.training.limit(percent)
