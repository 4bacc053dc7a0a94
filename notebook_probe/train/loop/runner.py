"""Runs of a loop: drawing batches, training steps and epochs, counting, stopping."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from threading import get_ident
from typing import Any, NamedTuple

from notebook_probe.errors import NoChangeError, TrainingStopped
from notebook_probe.run.going_back.requests import GoBack
from notebook_probe.run.going_back.way_back import GoingBack
from notebook_probe.run.reached_step import ReachedStep
from notebook_probe.train.data.batch import Batch
from notebook_probe.train.data.dataset import Dataset, as_dataset
from notebook_probe.train.generators import generator_states, set_generators
from notebook_probe.train.gradient_mode import gradient_mode_kept
from notebook_probe.train.loop.hooks import LoopHooks
from notebook_probe.train.loop.results import LoopResults
from notebook_probe.train.loop.stopping import CheckFinite, FiniteCheck, interrupts_wait
from notebook_probe.train.metrics.averages import Value
from notebook_probe.train.metrics.metrics import Metrics
from notebook_probe.train.trainer.trainer import Trainer
from notebook_probe.uninterrupted import uninterrupted

__all__ = ["LoopPlan", "LoopRunner"]

MOST_SKIPPED = 100
"""Updates in a row that a scaler may skip before that is an error."""


class LoopPlan(NamedTuple):
    """Plan of a run of a loop."""

    end_of: Callable[[Dataset], int]
    """The step after the last one; -1 if unknown."""
    train: Callable[[Dataset], None]


class LoopRunner:
    """Run a loop as planned; holds its counters, and its position in the data.

    Parameters
    ----------
    loop : Loop
        Passed to hooks.
    trainer : Trainer
    hooks : LoopHooks
    results : LoopResults
    check_finite : True, "now" or False

    Attributes
    ----------
    running : bool
        A run of the loop has begun, or a thread will begin it.
    stopping : bool
        The run ends after the step that runs now.
    takes_turns : bool
        True if it trains in turns with other loops.
    sent : GoBack or None
        Request to go back that ended the run.
    going_back : int or None
        Thread that goes back to an earlier step.
    """

    def __init__(
        self,
        loop: Any,
        trainer: Trainer,
        hooks: LoopHooks,
        results: LoopResults,
        check_finite: CheckFinite,
    ) -> None:
        self._loop, self._trainer, self._hooks, self._results = loop, trainer, hooks, results
        self.start_step = self.epoch = self.skipped_steps = 0
        self.end_step = -1
        self.durations = array("d")
        self.stopped, self.stop_reason = False, ""
        self.stopping = self.running = self.takes_turns = False
        self.sent: GoBack | None = None
        self.going_back: int | None = None
        self.reached = ReachedStep(0)
        self.last_data: Dataset | None = None
        self._finite = FiniteCheck(check_finite)
        self._data: Dataset | None = None
        self._unread: tuple[object, Mapping[str, Any]] = None, {}  # the first data, as it came
        self._resumed: Mapping[str, Any] | None = None
        self._n_skipped = 0
        self._is_done = False  # the step whose hooks run
        self._drawn: list[Batch] = []  # for the next step, also by an attempt that raised

    @property
    def loop_step(self) -> int:
        """The next step; in `on_step` the one just done."""
        return self._trainer.global_step - self._is_done

    def stop(self, reason: str = "") -> None:
        """End the run of the loop after the step that runs now; from any thread."""
        self.stop_reason = reason
        self.stopping = True

    def check_idle(self) -> None:
        """Raise RuntimeError while the loop runs."""
        if self.going_back not in (None, get_ident()):
            raise RuntimeError("the loop goes back to an earlier step; wait() for it")
        if self.running:
            raise RuntimeError("the loop runs already; stop() it, or wait() for it")

    # ---------------------------------------------------------------- state

    def state_dict(self) -> dict[str, Any]:
        """Return the positions of the loop and of its data, and the random generators.

        In `on_step` the step just done counts. Batches of a step that raised are drawn again.
        """
        if self._resumed is not None and not self.running:  # nothing has continued yet
            return {**self._resumed, "evaluated": self._results.of_evaluations()}
        data = self._data
        return {
            "loop_step": self._trainer.global_step,
            "epoch": self.epoch,
            "skipped_steps": self.skipped_steps,
            "evaluated": self._results.of_evaluations(),
            "data": None if data is None else data.state_dict(len(self._drawn)),
            "generators": generator_states(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`; data and generators do when the next run starts."""
        self._trainer.global_step = state["loop_step"]
        self.epoch, self.skipped_steps = state["epoch"], state["skipped_steps"]
        self._results.set_evaluations(state.get("evaluated", {}))
        if self.loop_step:  # else a scheduler of epochs warns, after one, of a wrong order
            self._trainer.optimizer._opt_called = True  # type: ignore[attr-defined]
        self._resumed, self._data, self._drawn = state, None, []

    def begin_at(self, step: int) -> None:
        """Count from a number of updates on; see `Loop.begin_at`."""
        self.check_idle()
        if self.loop_step:
            raise ValueError(f"begin_at({step}): the loop is at step {self.loop_step} already")
        self._trainer.global_step = step
        self._trainer.optimizer._opt_called = True  # type: ignore[attr-defined]  # or it warns
        if self._trainer.scheduler is not None:
            for _ in range(step):
                self._trainer.scheduler.step()

    # ---------------------------------------------------------------- running

    def begin(self, given: Iterable[Any]) -> Dataset:
        """Return the data in its present state; a stop counts from now on."""
        self.check_idle()
        self._hooks.check_added()
        data = self._dataset(given)
        self.stopping = self.stopped = False
        self.stop_reason = ""
        self.reached.reach(self.loop_step)
        return data

    def n_steps(self, n: int) -> LoopPlan:
        """Plan ``n`` steps."""
        end = self.loop_step + n
        return LoopPlan(lambda data: end, lambda data: self._steps(data, n))

    def n_epochs(self, n: int) -> LoopPlan:
        """Plan ``n`` epochs."""
        return LoopPlan(partial(self._end_of, n_epochs=n), lambda data: self._epochs(data, n))

    def run(self, data: Dataset, plan: LoopPlan) -> Metrics[Value] | None:
        """Train as planned; the metrics of the last step."""
        self._results.of_run = None
        error: BaseException | None = None
        try:
            self.running = True  # in the block that takes it back, whenever an interrupt comes
            with gradient_mode_kept(), interrupts_wait(partial(self.stop, "interrupted")):
                if self._resumed is None:
                    self._trainer.reset_train_metrics()
                    self.epoch = 0
                else:
                    set_generators(self._resumed["generators"])
                self.start_step, self.end_step = self.loop_step, plan.end_of(data)
                self._tell(epoch=-1)  # which epochs set
                del self.durations[:]
                self._hooks.on_start(self._loop, data)
                plan.train(data)
                # The loss of the last step may be under way, and must not be NaN unnoticed.
                self._finite.finish()
                if self.stopping:
                    self.stopped = True
                else:
                    self._hooks.on_end(self._loop, self._results.of_run)
        except GoingBack as sent:
            self.stopped, self.sent = True, sent.request
        except TrainingStopped:
            self.stopped = True
        except BaseException as raised:
            if not self._goes_back_instead(raised):
                error = raised
                raise
        finally:
            self.running = False
            has_trained = self._results.of_run is not None
            if error is None or has_trained:  # else the next run begins there again
                self._resumed = None
            try:
                self._hooks.on_close.call_each(self._loop)
            finally:
                if self._results.recording is not None:
                    self._results.recording.ended(error)
        return self._results.of_run

    def _goes_back_instead(self, raised: BaseException) -> bool:
        """Return whether it was paused by its exception, and sent back from there."""
        try:
            if self._results.recording is not None:
                self._results.recording.raised(raised)
        except GoingBack as sent:
            self.stopped, self.sent = True, sent.request
        return self.sent is not None

    def _steps(self, data: Dataset, n: int) -> None:
        batches = self.batches(data)
        while self.loop_step < self.end_step and not self.stopping:
            if not self.step(batches):
                done = self.loop_step - self.start_step
                raise RuntimeError(f"{done} of {n} steps done: data {data.name!r} ended")

    def _epochs(self, data: Dataset, n: int) -> None:
        self._tell(self.epoch)
        while self.epoch < n and not self.stopping:
            batches, before = self.batches(data), self.loop_step
            while self.step(batches):
                if self.stopping:
                    return
            data.reset()
            self.epoch += 1
            self._hooks.on_epoch(self._loop)
            if data.length is None:  # as many as in this epoch
                self.end_step = self.loop_step + (self.loop_step - before) * (n - self.epoch)
            else:  # another number may be accumulated from here on
                self.end_step = self._end_of(data, n)
            self._tell(self.epoch)

    def step(self, batches: Iterator[Batch]) -> bool:
        """Train one step; False at the end of the data."""
        self.reached.reach(self.loop_step)
        recording = self._results.recording
        if recording is not None:
            recording.boundary()
        if not self._draw(batches):
            return False
        begun, n_updates = time.perf_counter(), self._trainer.global_step
        try:
            metrics = self._trainer.train_step_accumulated(self._drawn)
            self._drawn = []
        finally:
            if self._trainer.global_step > n_updates:  # an interrupt came right after
                self._drawn = []
        if metrics is None:
            self._skip()
            return True
        try:
            self._is_done = True
            self._report(metrics)
        finally:
            self._is_done = False
            self.durations.append(time.perf_counter() - begun)
        return True

    def _draw(self, batches: Iterator[Batch]) -> bool:
        """Draw the batches of a step, unless an attempt that raised has; False where none is left.

        An interrupt waits, so that a batch is either in the data or among the drawn ones. What
        raises midway has drawn those before.
        """
        with uninterrupted:
            self._drawn.extend(islice(batches, self._trainer.accumulate - len(self._drawn)))
        return bool(self._drawn)

    def _report(self, metrics: Metrics[Value]) -> None:
        self._n_skipped = 0
        self._results.trained(metrics)
        self._hooks.on_step(self._loop, metrics)
        self._finite(self.loop_step, metrics["loss"])

    def _skip(self) -> None:
        self.skipped_steps += 1
        self._n_skipped += 1
        if self._n_skipped >= MOST_SKIPPED:
            raise NoChangeError(
                f"{MOST_SKIPPED} updates in a row were skipped before step {self.loop_step}: the "
                f"gradients are not finite at any scale"
            )

    def _tell(self, epoch: int) -> None:
        if self._results.recording is not None:
            end = self.end_step if self.end_step >= self.start_step else -1
            self._results.recording.expects(self.start_step, end, epoch)

    def batches(self, data: Dataset) -> Iterator[Batch]:
        """Return the batches of the data, recorded as they are drawn."""
        recording = self._results.recording
        return iter(data) if recording is None else recording.batches(data)

    def _dataset(self, given: Iterable[Any]) -> Dataset:
        """Return the data in its position, if it is the same as before."""
        known = self._data
        if known is None or (given is not known and given is not known.source):
            known, self._drawn = as_dataset(given), []
        if self.last_data is None:
            self._unread = known.source, known.state_dict()
        if self._resumed is not None:
            state, self._drawn = self._resumed["data"], []
            known.reset() if state is None else known.load_state_dict(state)
            if state is None and self._unread[0] is known.source:  # of before any was drawn
                known.load_state_dict(self._unread[1])
        self._data = self.last_data = known
        return known

    def _end_of(self, data: Dataset, n_epochs: int) -> int:
        if data.length is None:
            return -1
        of_epoch = -(-data.length // self._trainer.accumulate)
        done = -(-data.position // self._trainer.accumulate)
        return self.loop_step + of_epoch * (n_epochs - self.epoch) - done
