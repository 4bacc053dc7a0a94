"""Changes to the settings of a training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, SupportsFloat

from notebook_probe.errors import shown_as
from notebook_probe.run.actions.base import LiveActions
from notebook_probe.run.attach.requests import Release, Scale, Set, Ticket
from notebook_probe.run.settings.knob import Knob
from notebook_probe.run.settings.setting import KnobInfo

__all__ = ["SettingActions"]


@shown_as("run")
class SettingActions(LiveActions):
    """Methods that set learning rates, other options of the optimizers, and knobs."""

    def set(
        self, name: str, value: SupportsFloat, *, group: int | None = None, hold: bool = False
    ) -> Ticket:
        """Set the learning rate or another number while it trains, from any thread.

        It acts at once if no step is open, else from the next step on; the ticket reports the
        result. Each change is an event of kind ``"set"`` and a mark on every line, its detail the
        JSON of ``{"name", "group", "from", "to"}``.

        An option of the optimizers is set in all groups of every optimizer that steps this model.
        If a scheduler changes it, or a loop that writes learning rates, the value becomes a factor
        of the schedule; setting it again replaces the factor. Between the steps, the groups and the
        states of optimizer and scheduler have the scheduled value; while the optimizer steps, the
        groups have the scheduled value times the factor. No state contains the factor: a resumed
        training sets it again. Without a schedule the groups have the value; ReduceLROnPlateau,
        which cannot be detected before it first reduces, continues from the value. With ``hold``
        the option keeps the value, regardless of the schedule, until it is set again or `release`
        returns it to the schedule. The value stays after the end of the run. In a job of several
        processes, call it in each.

        Parameters
        ----------
        name : str
            ``"lr"``; another option that is a float, ``"weight_decay"`` or ``"momentum"``; or a
            `knob`. `knobs` lists them all.
        value : number
        group : int, optional
            Index of a parameter group, counted through all optimizers: first the one given to
            `watch`, then the others in the order of their first steps.
        hold : bool
            True to keep the value, regardless of a schedule; only for options of the optimizers.

        Raises
        ------
        UnknownNameError
            Unknown name, with the close names.
        SettingError
            The value is not a number, is NaN or out of range; the group does not exist; no
            optimizer is known yet; or the schedule is at 0 now.
        ClosedRunError

        Examples
        --------
        >>> run.set("lr", 1e-3)  # doctest: +SKIP
        >>> run.set("lr", 1e-4, group=1)  # doctest: +SKIP
        """
        return self._put_setting(Set(name, value, group, hold))  # type: ignore[arg-type]

    def scale(self, name: str, factor: float, *, hold: bool = False) -> Ticket:
        """Multiply a setting by one factor, in each group.

        Differences between groups remain. Otherwise same as `set`.

        Parameters
        ----------
        name : str
        factor : number
            Above 0.
        hold : bool

        Raises
        ------
        UnknownNameError, SettingError, ClosedRunError

        Examples
        --------
        >>> run.scale("lr", 0.1)  # doctest: +SKIP
        """
        return self._put_setting(Scale(name, factor, hold))

    def release(self, name: str, *, group: int | None = None) -> Ticket:
        """Return an option of the optimizers to its schedule, without the value that was set.

        Parameters
        ----------
        name : str
        group : int, optional

        Raises
        ------
        UnknownNameError, SettingError, ClosedRunError

        Examples
        --------
        >>> run.set("lr", 1e-4, hold=True)  # doctest: +SKIP
        >>> run.release("lr")  # doctest: +SKIP
        """
        return self._put_setting(Release(name, group))

    def _put_setting(self, request: Set | Scale | Release) -> Ticket:
        live = self._live
        # Checked on this thread, so that a mistake raises here and not in a ticket.
        live.settings.check(request)
        return live.put_between_steps(request)

    def knob(
        self,
        name: str,
        get: Callable[[], SupportsFloat],
        set: Callable[[Any], object],
        low: float | None = None,
        high: float | None = None,
        log: bool = False,
    ) -> None:
        """Register a number that can be set during training, by `set` and in the panel.

        A knob of the same name is replaced, as when a cell is run again. An error in ``set``
        refuses the request with its text, and never reaches the training.

        Parameters
        ----------
        name : str
        get : callable
            ``get()`` returns the current number; it may be called on any thread.
        set : callable
            ``set(value)`` is called between two steps, on the thread that trains.
        low, high : number, optional
            Allowed range, ends included.
        log : bool
            True if the number is changed by factors, as a learning rate is; ``low`` is then above
            0.

        Raises
        ------
        SettingError
            The range is not allowed, or ``get`` or ``set`` is not a function.
        DuplicateNameError
            The name is an option of the optimizer.
        ClosedRunError
        Exception
            Any error of ``get``: it is called at once.

        Examples
        --------
        >>> run.knob("dropout", lambda: drop.p, lambda p: setattr(drop, "p", p), 0.0, 0.9)
        ... # doctest: +SKIP
        >>> run.set("dropout", 0.2)  # doctest: +SKIP
        """
        self._live.settings.add(Knob.of(name, get, set, low, high, log))

    def knobs(self) -> list[KnobInfo]:
        """Return all settings: options of the optimizers, then your knobs.

        Examples
        --------
        >>> [(knob.name, knob.value) for knob in run.knobs()]  # doctest: +SKIP
        [('lr', 0.01), ('weight_decay', 0.0001), ('dropout', 0.2)]
        """
        return self._live.settings.infos()
