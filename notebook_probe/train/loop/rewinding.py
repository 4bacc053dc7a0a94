"""Going back of a loop to an earlier step, as its user or its panel requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from threading import get_ident
from typing import Any

from notebook_probe.errors import CheckpointError, ProbeError
from notebook_probe.run.background import Background
from notebook_probe.run.going_back.requests import EvaluateAt, GoBack
from notebook_probe.run.run import Run
from notebook_probe.train.checkpoints.ranks import own_rank
from notebook_probe.train.data.batch import Batch
from notebook_probe.train.data.dataset import Dataset
from notebook_probe.train.evaluate_back import evaluate_back
from notebook_probe.train.loop.hooks import LoopHooks
from notebook_probe.train.loop.runner import LoopPlan, LoopRunner
from notebook_probe.train.metrics.averages import Value
from notebook_probe.train.metrics.metrics import Metrics
from notebook_probe.train.rewind import RewoundTraining, rewind
from notebook_probe.uninterrupted import uninterrupted

__all__ = ["Rewinding"]

NO_THREAD_YET = -1


class Rewinding:
    """Train the steps up to an earlier one again, and go back when a run requests it.

    Parameters
    ----------
    loop : RewoundTraining
    runner : LoopRunner
    hooks : LoopHooks

    Attributes
    ----------
    replaying : bool
        Steps are trained again now, to get back to one of them.
    going_to : int or None
        Step to which a run has sent the loop, until its branch begins.
    """

    restores = "Weights, optimizer, scheduler, random numbers and the order of the data"

    def __init__(self, loop: RewoundTraining, runner: LoopRunner, hooks: LoopHooks) -> None:
        self._loop, self._runner, self._hooks = loop, runner, hooks
        self._end = 0
        self.replaying = False
        self.going_to: int | None = None

    def rewind(self, step: int, data: Any, options: Mapping[str, Any]) -> Run | None:
        """Go back to a step; see `Loop.rewind`."""
        self._runner.check_idle()
        data = self._runner.last_data if data is None else data
        if data is None:
            raise ValueError(f"rewind({step}): the loop has not run yet; give it the data")
        return rewind(self._loop, partial(self._replay, data), step, options)

    def run_on(self, data: Dataset, plan: LoopPlan) -> Metrics[Value] | None:
        """Train as planned, also after going back."""
        try:
            metrics = self._runner.run(data, plan)
            return self._run_branches(data, plan) if self._runner.sent is not None else metrics
        finally:
            self._end = max(self._runner.end_step, self._loop.n_updates)

    def _run_branches(self, data: Dataset, plan: LoopPlan) -> Metrics[Value] | None:
        """Go back as requested, and train as planned, until no run sends the loop back again."""
        runner = self._runner
        metrics = None
        while runner.sent is not None:
            request, runner.sent = runner.sent, None
            runner.going_back, self.going_to = get_ident(), request.step
            try:
                self._go_back(request)
                data = runner.begin(data)
            finally:
                runner.going_back = self.going_to = None
            metrics = runner.run(data, plan)
        return metrics

    def background(self, train: Callable[[], Any]) -> Background:
        """Call a function on a thread, that of the run if there is one."""
        run, runner = self._loop.run, self._runner
        if run is not None:
            return run.train_in_background(train)
        return Background(
            train, on_end=lambda error: None, stop=runner.stop, reached=runner.reached
        ).start()

    def _go_back(self, request: GoBack) -> None:
        before = self._loop.run
        assert before is not None  # which has asked for it
        options = {**before.controls.options, "rank": None}  # the folder of a rank is the record's
        # What is attached now is copied below, and replaces the probes of the options.
        run = self.rewind(request.step, None, {**options, "probes": None})
        assert run is not None
        run.controls.copy_requests(before.controls)
        run.controls.begin_branch(request)

    # ---------------------------------------------------------------- after the loop has ended

    @property
    def ended_at(self) -> int | None:
        """Step up to which a rewound loop trains: where it was to end; None while it runs."""
        runner = self._runner
        is_busy = runner.running or runner.going_back is not None
        return None if is_busy or runner.last_data is None else self._end

    def check_start(self, step: int) -> None:
        """Raise a ProbeError that says why a loop that has ended cannot go back to ``step``."""
        if own_rank()[1] > 1:
            raise ProbeError("of several processes each goes back by loop.rewind, all together")
        if not 0 <= step <= self._loop.n_updates:
            raise CheckpointError(f"step {step}: the training is at {self._loop.n_updates}")
        self._loop.kept.check_before(step)

    def start_back(self, request: GoBack) -> None:
        """Go back on a thread, and train on there up to the step at which the loop was to end."""
        run, runner, end = self._loop.run, self._runner, self._end
        assert run is not None  # which has asked for it
        plan = LoopPlan(lambda data: end, self._on_to_end)
        with uninterrupted:  # no cell may start the loop before the thread goes back
            runner.going_back, self.going_to = NO_THREAD_YET, request.step
            try:
                run.controls.train_in_background(partial(self._back_and_on, request, plan))
            except BaseException:
                runner.going_back = self.going_to = None
                raise

    def _back_and_on(self, request: GoBack, plan: LoopPlan) -> Metrics[Value] | None:
        data = self._runner.last_data
        assert data is not None  # or there is no end to train up to
        self._runner.sent = request
        try:
            return self._run_branches(data, plan)
        finally:
            self._end = max(self._runner.end_step, self._loop.n_updates)

    def _on_to_end(self, data: Dataset) -> None:
        """Train up to the end of the run of the loop, over epochs as they come."""
        self._to_step(lambda step: None, data)

    # ---------------------------------------------------------------- requests of the run

    def check_back(self, step: int) -> None:
        """Raise a ProbeError that says why the state after ``step`` updates cannot be had."""
        if not self._runner.running:
            raise ProbeError("the loop does not run; loop.rewind goes back")
        if self._runner.takes_turns:
            raise ProbeError("it trains in turn with others; afterwards loop.rewind goes back")
        self.check_start(step)

    def evaluate_back(self, request: EvaluateAt) -> str:
        """Measure in an earlier state without changing anything; return what was done, as text."""
        run = self._loop.run
        assert run is not None  # which has asked for it
        return evaluate_back(run, self._loop.kept.before(request.step), request)

    def save_now(self) -> str:
        """Save the present state where checkpoints are kept; return what was done, as text."""
        if own_rank()[1] > 1:
            raise ProbeError(
                "of several processes each saves by loop.save_checkpoint, all together"
            )
        if not self._runner.running:
            raise ProbeError("the loop does not run; loop.save_checkpoint saves")
        return self._loop.kept.save_again()

    # ---------------------------------------------------------------- training again

    def _replay(self, data: Iterable[Any], step: int, at_boundary: Callable[[int], None]) -> None:
        """Train the steps up to ``step`` again, over epochs as they come.

        Before each of them ``at_boundary`` is called with its number, at the end of an epoch twice.
        It ends as a stop does, without `on_end`: the training stands before ``step``.
        """
        runner = self._runner
        begun = runner.begin(data)
        self.replaying = True

        def again(data: Dataset) -> None:
            self._to_step(at_boundary, data)
            runner.stop()  # its end is not that of a training: no `on_end`

        try:
            runner.run(begun, LoopPlan(lambda data: step, again))
        finally:
            self.replaying = False
        runner.load_state_dict(runner.state_dict())  # the next run of the loop continues here

    def _to_step(self, at_boundary: Callable[[int], None], data: Dataset) -> None:
        runner, was_empty = self._runner, False
        while not runner.stopping:
            batches, before = runner.batches(data), runner.loop_step
            while self._steps_again(batches, at_boundary):
                if runner.stopping:
                    return
            if runner.loop_step == runner.end_step:
                return
            is_empty = runner.loop_step == before  # once it may be: at the end of an epoch
            if is_empty and was_empty:
                raise RuntimeError(f"data {data.name!r} is empty before step {runner.end_step}")
            was_empty = is_empty
            data.reset()
            runner.epoch += 1
            self._hooks.on_epoch(self._loop)

    def _steps_again(self, batches: Iterator[Batch], at_boundary: Callable[[int], None]) -> bool:
        runner = self._runner
        if runner.loop_step == runner.end_step:
            return False
        at_boundary(runner.loop_step)
        return runner.step(batches)
