"""Course of one training, as its items see it; a run is followed by one at a time."""

from __future__ import annotations

import shutil
import sys
import weakref
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

from notebook_probe.record.store.location import local_path
from notebook_probe.run.run import Run
from notebook_probe.summary.budget import ByteCounter
from notebook_probe.summary.moment import Item, Moment
from notebook_probe.summary.outlook import Outlook, Units, UnitSchedule
from notebook_probe.summary.settings import CollectorSettings
from notebook_probe.summary.units import NOTHING, Due
from notebook_probe.train.data.dataset import Dataset
from notebook_probe.train.loop.loop import Loop

__all__ = ["Course"]

_courses: MutableMapping[Run, weakref.ref[Course]] = weakref.WeakKeyDictionary()
"""The course that follows each run; it must keep neither of the two alive."""


class Course:
    """Pass the moments of a training to the items.

    Parameters
    ----------
    settings : CollectorSettings
    items : sequence of Item

    Attributes
    ----------
    run : Run or None
        Run that is followed; None before its training, and once another course follows it.
    """

    def __init__(self, settings: CollectorSettings, items: Sequence[Item]) -> None:
        self.settings, self.items = settings, tuple(items)
        self.units = Units(settings)
        every, of_tensors = settings.collect_freq, settings.collect_tensor_freq or "auto"
        self._schedule = UnitSchedule(self.units, "data", f"summary({every} {settings.unit}s)")
        self._tensor_schedule = UnitSchedule(
            self.units, "tensors", f"summary tensors({of_tensors} {settings.unit}s)"
        )
        self._budget = ByteCounter(settings.max_file_size, self._free)
        self._following = [
            item for item in items if type(item).stepped is not Item.stepped
        ]  # most of them need not be asked at each step
        self.run: Run | None = None
        self._loop: Loop | None = None
        self._data: Dataset | None = None
        self._has_begun = self._goes_on = False
        self._last_unit: int | None = None

    def start(
        self,
        run: Run,
        step: int,
        outlook: Outlook,
        loop: Loop | None = None,
        data: Dataset | None = None,
    ) -> None:
        """Start, or continue, a training at a step.

        Raises
        ------
        ValueError
            Another course follows the run.
        """
        # Before anything is attached: a second collector is refused without a trace.
        self._claim(run)
        _offer_views()
        self.run, self._loop, self._data = run, loop, data
        self.units.outlook, self._last_unit, self._goes_on = outlook, None, True
        moment = self._moment(step, NOTHING)
        self._ask(lambda item: item.start(moment))

    def given(self, step: int, outputs: Any, is_over: bool = False) -> None:
        """Handle the loss of a step, or its outputs; another step may have started since."""
        due = self.units.due(step)
        if due.data:
            moment = self._moment(step, due, outputs, is_over)
            self._ask(lambda item: item.given(moment))

    def collect(self, step: int) -> None:
        """Collect what is due at a step; each unit once."""
        due = self.units.due(step)
        if due and self.units.unit_of(step) != self._last_unit:
            moment = self._moment(step, due)
            self._last_unit = moment.unit
            self._ask(lambda item: item.collect(moment))

    def stepped(self, step: int, loss: Any = None) -> None:
        """Handle a trained step."""
        awaiting = [item for item in self._following if item.awaits(step)]
        if self._has_begun and not awaiting:
            return
        moment = self._moment(step, self.units.due(step), loss)
        if not self._has_begun:
            self._has_begun = True
            self._ask(lambda item: item.begin(moment))
        self._ask(lambda item: item.stepped(moment), awaiting)

    def epoch_ended(self, step: int) -> None:
        """Handle a trained epoch; ``step`` was its last."""
        moment = self._moment(step, NOTHING)
        self._ask(lambda item: item.epoch_ended(moment))

    def evaluated(self, step: int, metrics: Mapping[str, float]) -> None:
        """Handle an evaluation of the loop."""
        moment = self._moment(step, NOTHING)
        self._ask(lambda item: item.evaluated(moment, metrics))

    def end(self, step: int) -> None:
        """End the training for now."""
        self._goes_on = False
        moment = self._moment(step, NOTHING)
        self._ask(lambda item: item.end(moment))
        for item in self.items:
            if item.dropped:
                dropped = [f"{n} {what}" for what, n in item.dropped.items()]
                self._note(f"{item.name}: {', '.join(dropped)} could not be kept", item.dropped)
                # Reported once: a training that continues counts from 0 again.
                item.dropped.clear()

    def remove(self) -> None:
        """Collect nothing any more."""
        for item in self.items:
            item.remove()
        self.run = self._loop = None

    @property
    def is_busy(self) -> bool:
        """True if further steps of its training may follow."""
        return self._goes_on and self.run is not None and not self.run.closed

    # ---------------------------------------------------------------- inside

    def _claim(self, run: Run) -> None:
        """Claim a run; an idle former course gives way, as when a cell is run again."""
        known = _courses.get(run)
        before = None if known is None else known()
        if before is not None and before is not self and before.run is run:
            if before.is_busy:
                raise ValueError(f"another collector follows this run, {run!r}; allowed: one")
            before.remove()
        _courses[run] = weakref.ref(self)

    def _ask(self, what: Callable[[Item], None], items: Sequence[Item] | None = None) -> None:
        for item in self.items if items is None else items:
            if not item.is_off:
                item.attempt(lambda item=item: what(item))  # type: ignore[misc]

    def _note(self, text: str, dropped: Mapping[str, int]) -> None:
        if self.run is not None and not self.run.closed:
            self.run.note("summary", text, dropped=dict(dropped))

    def _moment(self, step: int, due: Due, loss: Any = None, is_over: bool = False) -> Moment:
        run = self.run
        assert run is not None
        return Moment(
            step=step,
            unit=self.units.unit_of(step),
            run=run,
            settings=self.settings,
            units=self.units,
            budget=self._budget,
            schedule=self._schedule,
            tensor_schedule=self._tensor_schedule,
            due=due,
            loop=self._loop,
            data=self._data,
            loss=loss,
            is_over=is_over,
        )

    def _free(self) -> int:
        """Return the free bytes where the record is; for a remote one, where it is spooled."""
        place = None if self.run is None else local_path(self.run.location)
        return shutil.disk_usage(place or self.settings.summary_dir).free


def _offer_views() -> None:
    """Show the views in panels if this is a notebook; import nothing of Jupyter elsewhere."""
    if "ipykernel" in sys.modules:
        from notebook_probe.summary.views import show_views

        show_views()
