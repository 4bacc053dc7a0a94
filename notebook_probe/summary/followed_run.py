"""A run whose training loop is the user's own, followed step by step."""

from __future__ import annotations

from typing import Any

from notebook_probe.run.run import Run
from notebook_probe.summary.collection import Course
from notebook_probe.summary.outlook import Outlook
from notebook_probe.train.data.dataset import Dataset

__all__ = ["FollowedRun"]


class FollowedRun:
    """Collector of a run, from `SummaryCollector.attach`; ends with ``with`` or the run.

    Parameters
    ----------
    run : Run
    course : Course
    data : Dataset or None
    steps_per_epoch : int or None

    Raises
    ------
    ValueError
        Another one follows the run.
    """

    def __init__(
        self, run: Run, course: Course, data: Dataset | None, steps_per_epoch: int | None
    ) -> None:
        step = run.controls.status_head().step
        self._run, self._course, self._steps_per_epoch = run, course, steps_per_epoch
        self._next = self._first = step
        course.start(run, step, self._outlook(step), data=data)
        self._ends = [run.controls.each_step(self._before), run.controls.each_end(self.remove)]

    def metric(self, outputs: Any) -> None:
        """Record what a step has computed: its loss, or a list that starts with it.

        Call it before the update. Where data is due it is recorded as ``loss``. The tensor that
        `backward()` is called on is recorded for every step in any case.

        Examples
        --------
        >>> following.metric(loss)  # doctest: +SKIP
        """
        if self._ends:
            self._course.given(self._run.controls.open_step, outputs)

    def remove(self) -> None:
        """Collect nothing more; calling it twice is fine."""
        if not self._ends:
            return
        for end in self._ends:
            end()
        self._ends = []
        if not self._run.closed:
            self._run.controls.settle()
            step = self._run.controls.status_head().step
            if step > self._next >= self._first:  # no step has followed the last one
                self._course.stepped(self._next)
            self._course.end(step)
        self._course.remove()

    def __enter__(self) -> FollowedRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def _before(self, step: int) -> None:
        """Handle the start of a step; the previous one is complete."""
        if step > self._first:
            self._course.stepped(step - 1)
        self._next = step
        self._course.units.outlook = self._outlook(step)
        self._course.collect(step)

    def _outlook(self, step: int) -> Outlook:
        end, size = self._run.controls.end_step, self._steps_per_epoch
        known = end if end > step else None
        if size is None:
            return Outlook(known)
        epoch = step // size
        n_epochs = None if known is None else -(-known // size)
        return Outlook(known, epoch + 1, (epoch + 1) * size - 1, n_epochs)
