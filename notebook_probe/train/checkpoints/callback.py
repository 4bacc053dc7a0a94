"""Checkpoints that a loop saves automatically, and their retention."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any

from notebook_probe.record.store.location import Location
from notebook_probe.schedules import ScheduleLike, schedule
from notebook_probe.train.checkpoints.due_states import DueStates
from notebook_probe.train.checkpoints.keeping import Best, Keep
from notebook_probe.train.checkpoints.ranks import own_rank

__all__ = ["Checkpoints"]


class Checkpoints:
    """Save a loop while it trains: ``loop.add(Checkpoints("checkpoints", every=500))``.

    Tensors are copied between two steps, into the same memory each time, and written by a thread
    while training continues; the next save waits for it. A state whose loss is not finite is not
    saved. A save that fails ends the training: the next save, or the end of the run of the loop,
    raises its error.

    Parameters
    ----------
    folder : path, URL, zarr Store or RemoteStore
        Location of the checkpoints; it is created if needed. ``"s3://bucket/run"`` is written as
        records are.
    every : schedule
        Schedule of the number of completed updates: 500 is after updates 500, 1000, ...
    keep_last : int, optional
        Number of newest checkpoints that remain.
    keep_best : (name, "min" or "max", n), optional
        Number of best checkpoints that remain, by a metric that is reported of the saved state
        itself: of its step, or of an evaluation before the next step, such as after the epoch that
        it ends. The newest remains too. Without ``keep_last`` and ``keep_best`` all remain; those
        of `Loop.save_checkpoint` always do.
    at_close : bool
        Also save the last state at the end of the run of the loop, after Stop, Ctrl-C or an error,
        too. A job of several processes saves it only after all steps, because the processes save
        together.

    Examples
    --------
    >>> kept = Checkpoints("checkpoints", every=500, keep_best=("eval_loss", "min", 1))
    >>> loop.add(kept)  # doctest: +SKIP
    """

    priority = 100
    """Priority after the hooks that change or evaluate the state."""

    def __init__(
        self,
        folder: Location,
        every: ScheduleLike = 1000,
        keep_last: int | None = None,
        keep_best: Best | None = None,
        at_close: bool = False,
    ) -> None:
        self.folder = folder
        self._due, self._keep = DueStates(schedule(every)), Keep(keep_last, keep_best)
        self._at_close = at_close
        self._last_saved, self._is_done, self._is_missing = -1, False, False

    def on_start(self, loop: Any, data: Any) -> None:
        """Check that the location can be written, before training starts."""
        self._is_done, self._is_missing = False, False
        self._last_saved = loop.loop_step
        self._due.begin(loop.start_step, loop.end_step)
        if not loop.replaying and own_rank()[0] == 0:
            loop.kept.store(self.folder).begin()

    def on_step(self, loop: Any, metrics: Mapping[str, Any]) -> None:
        """Save the state after a step that is due."""
        if self._due(loop.n_updates, loop.end_step) and not loop.replaying:
            self._save(loop, background=True)
            self._due.done()

    def on_eval(self, loop: Any, metrics: Mapping[str, float]) -> None:
        """Add an evaluation of the state that was saved last to its checkpoint."""
        if self._keep.best is None or loop.replaying or loop.n_updates != self._last_saved:
            return
        self._is_missing = self._keep.best[0] not in loop.state_metrics()
        loop.kept.amend(self.folder, self._keep)

    def on_end(self, loop: Any, metrics: Any) -> None:
        """All steps are done."""
        self._is_done = True

    def on_close(self, loop: Any) -> None:
        """Save the last state if ``at_close``, and wait until all is written."""
        if loop.replaying:
            return
        together = own_rank()[1] > 1
        owed = self._is_done and self._due.is_owed(loop.loop_step)
        # Saving needs every process: after an error of this one the others may never come.
        wanted = owed or (self._at_close and (self._is_done or not together))
        try:
            if wanted and self._last_saved != loop.loop_step:
                self._save(loop, background=False)
        finally:
            if own_rank()[0] == 0:
                loop.kept.store(self.folder).end()
        if self._is_missing and self._keep.best is not None:
            warnings.warn(
                f"keep_best={self._keep.best!r}: no value of {self._keep.best[0]!r} at the steps "
                f"that were saved; evaluate at the same steps, by loop.eval_every(data, n), or "
                f"save where epochs end",
                stacklevel=2,
            )

    def _save(self, loop: Any, *, background: bool) -> None:
        loss = loop.last_metrics.get("loss", 0.0)
        # A diverged state is nothing to continue from, and could replace the last good one.
        if not math.isfinite(float(loss)):
            return
        if self._keep.best is not None:
            self._is_missing = self._keep.best[0] not in loop.state_metrics()
        loop.kept.save(self.folder, self._keep, background=background)
        self._last_saved = loop.n_updates
