"""The loop: steps and epochs, with hooks around them."""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from operator import index
from typing import Any

from notebook_probe.errors import NoChangeError, TrainingStopped
from notebook_probe.run.background import Background
from notebook_probe.run.reached_step import ReachedStep
from notebook_probe.run.run import Run
from notebook_probe.train.data.batch import Batch
from notebook_probe.train.data.dataset import Dataset, as_dataset
from notebook_probe.train.generators import generator_states, set_generators
from notebook_probe.train.loop.finite import CheckFinite, FiniteCheck
from notebook_probe.train.loop.interrupts import interrupts_wait
from notebook_probe.train.loop.progress import Progress
from notebook_probe.train.loop.rewound import Plan
from notebook_probe.train.loop.sent_back import Sent, SentBack
from notebook_probe.train.metrics.averages import Value
from notebook_probe.train.trainer.trainer import Trainer

__all__ = ["Loop"]

MOST_SKIPPED = 100
"""So many updates in a row that a scaler skips are no accident."""

FASTEST_S = 0.001
"""The step duration that is told before there is one."""


class Loop(SentBack):
    """Trains: steps and epochs over data, with hooks.

    Parameters
    ----------
    trainer : Trainer
    run : Run, optional
        Records the training; `watch` makes one.
    progress : bool, optional
        A bar of tqdm; by default in a terminal, and in a notebook that shows no panel.
    check_finite : True, "now" or False
        What to do about losses that are NaN or infinite: raise, on an accelerator at most one step
        late; wait for the device to raise at once; nothing.

    Attributes
    ----------
    loop_step : int
        The step that comes next; in `on_step` the one just done.
    start_step, end_step : int
        Of the run of the loop; one past the last step, -1 where nobody knows.
    epoch : int
        0-based; after `run_epochs` the number of epochs.
    shared_data : dict
        For whoever takes part.
    train_step_durations : array of float
        Seconds of each step of this run of the loop, hooks included.
    skipped_steps : int
        Attempts that led to no update.
    last_metrics : dict
        The newest value of everything reported, by the name it is recorded under.
    stopped : bool
        The last run of the loop was ended by Stop, by `stop`, or by Ctrl-C.
    stop_reason : str
        What `stop` was told, or "".

    Examples
    --------
    >>> import torch
    >>> model = torch.nn.Linear(2, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), 0.1)
    >>> loop = Loop(Trainer(model, torch.nn.functional.mse_loss, optimizer))
    >>> data = [(torch.ones(4, 2), torch.ones(4, 1))] * 5
    >>> hook = loop.on_step(lambda loop, metrics: print(loop.loop_step))
    >>> metrics = loop.run_epochs(data[:2], 2)
    0
    1
    2
    3
    """

    def __init__(
        self,
        trainer: Trainer,
        run: Run | None = None,
        check_finite: CheckFinite = True,
        progress: bool | None = None,
    ) -> None:
        if not isinstance(trainer, Trainer):
            raise TypeError(f"Loop({type(trainer).__name__}): a Trainer(model, ...) is expected")
        if run is not None and not isinstance(run, Run):
            raise TypeError(
                f"Loop(trainer, run={type(run).__name__}): what nbp.watch returns is expected; "
                f"data is given to run_steps and run_epochs"
            )
        super().__init__(trainer)
        self.start_step = 0
        self.epoch = self.skipped_steps = 0
        self.end_step = -1
        self.shared_data: dict[str, Any] = {}
        self.train_step_durations = array("d")
        self.stopped, self.stop_reason = False, ""
        self._finite = FiniteCheck(check_finite)
        self._data: Dataset | None = None
        self._unread: tuple[object, Mapping[str, Any]] = None, {}  # the first data, as it came
        self._resumed: Mapping[str, Any] | None = None
        self._metrics: dict[str, Value] | None = None
        self._stopping = self._running = False
        self._reached = ReachedStep(0)
        self._n_skipped = 0
        self._drawn_for_step: list[Batch] = []
        self.add(Progress(progress))
        if run is not None:
            self.record_to(run)

    # ---------------------------------------------------------------- running

    def run_steps(self, data: Iterable[Any], n: int) -> dict[str, Value] | None:
        """Train ``n`` steps; the metrics of the last one.

        The data is never begun anew: the next call goes on where this one ended. None, and nothing
        is touched, when ``n`` is not positive.

        Raises
        ------
        RuntimeError
            The data ended before.
        """
        n = _whole(n, "run_steps")
        return self._run_on(self._begin(data), self._n_steps(n)) if n > 0 else None

    def run_to_global_step(self, data: Iterable[Any], step: int) -> dict[str, Value] | None:
        """Train until ``loop_step`` is ``step``."""
        return self.run_steps(data, _whole(step, "run_to_global_step") - self.loop_step)

    def run_epochs(self, data: Iterable[Any], n: int) -> dict[str, Value] | None:
        """Train ``n`` epochs, each to the end of the data, which then begins anew.

        After `load_state_dict` it goes on in the epoch, and at the batch, of the checkpoint.
        """
        n = _whole(n, "run_epochs")
        return self._run_on(self._begin(data), self._n_epochs(n)) if n > 0 else None

    def start(
        self, data: Iterable[Any], *, steps: int | None = None, epochs: int | None = None
    ) -> Background:
        """Train in the background, so that the notebook stays free; ``wait()`` gives the metrics.

        ``wait(step=100)`` waits until that step only. A stop counts from here on: one that comes
        before the thread has begun lets no batch be drawn.

        Raises
        ------
        ValueError
            Unless one of ``steps`` and ``epochs`` is given.
        RuntimeError
            The loop runs already.
        """
        if (steps is None) == (epochs is None):
            raise ValueError(f"start(steps={steps}, epochs={epochs}): one of them is expected")
        n = epochs if steps is None else steps
        if n is None or n <= 0:
            return self._in_background(lambda: None)
        plan = self._n_epochs(n) if steps is None else self._n_steps(n)
        train = partial(self._run_on, self._begin(data), plan)
        try:
            return self._in_background(train)
        except BaseException:  # no thread has taken it over
            self._running = False
            raise

    def stop(self, reason: str = "") -> None:
        """End the run of the loop after the step that runs now; from any thread."""
        self.stop_reason = reason
        self._stopping = True

    def median_train_step_duration(self) -> float:
        """The upper median of the durations in s; 1 ms before there is one."""
        durations = sorted(self.train_step_durations)
        return durations[len(durations) // 2] if durations else FASTEST_S

    # ---------------------------------------------------------------- going on later

    def state_dict(self) -> dict[str, Any]:
        """Where the loop is, where in its data, and the random generators.

        In `on_step` the step just done counts. Batches of a step that raised are drawn again.
        """
        if self._resumed is not None and not self._running:  # nothing has gone on yet
            return {**self._resumed, "evaluated": self._evaluations()}
        data = self._data
        return {
            "loop_step": self.n_updates,
            "epoch": self.epoch,
            "skipped_steps": self.skipped_steps,
            "evaluated": self._evaluations(),
            "data": None if data is None else data.state_dict(len(self._drawn_for_step)),
            "generators": generator_states(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from `state_dict`; data and generators do as the next run of the loop begins."""
        self.loop_step = self.trainer.global_step = state["loop_step"]
        self.epoch, self.skipped_steps = state["epoch"], state["skipped_steps"]
        self._evaluated = self.loop_step, dict(state.get("evaluated", {}))
        if self.loop_step:  # else a scheduler of epochs warns, after one, of a wrong order
            self.trainer.optimizer._opt_called = True  # type: ignore[attr-defined]
        self._resumed, self._data, self._drawn_for_step = state, None, []

    # ---------------------------------------------------------------- inside

    def _begin(self, given: Iterable[Any]) -> Dataset:
        """Take the loop, to be stopped from now on; the data as it was left."""
        self._check_idle()
        self._check_added()
        data = self._dataset(given)
        self._running, self._stopping, self.stopped = True, False, False
        self.stop_reason = ""
        self._reached.reach(self.loop_step)
        return data

    def _in_background(self, train: Callable[[], Any]) -> Background:
        if self.run is not None:
            return self.run.train_in_background(train)
        return Background(train, on_end=lambda error: None, stop=self.stop, reached=self._reached)

    def _n_steps(self, n: int) -> Plan:
        end = self.loop_step + n
        return Plan(lambda data: end, lambda data: self._steps(data, n))

    def _n_epochs(self, n: int) -> Plan:
        return Plan(partial(self._end_of, n_epochs=n), lambda data: self._epochs(data, n))

    def _run(self, data: Dataset, plan: Plan) -> dict[str, Value] | None:
        self.trainer.global_step = self.loop_step
        self._metrics = None
        error: BaseException | None = None
        try:
            with interrupts_wait(partial(self.stop, "interrupted")):
                if self._resumed is None:
                    self.trainer.reset_train_metrics()
                    self.epoch = 0
                else:
                    set_generators(self._resumed["generators"])
                self.start_step, self.end_step = self.loop_step, plan.end_of(data)
                self._tell(epoch=-1)  # which epochs set
                del self.train_step_durations[:]
                self._on_start(self, data)
                plan.train(data)
                self._finite.finish()
                if self._stopping:
                    self.stopped = True
                else:
                    self._on_end(self, self._metrics)
        except Sent as sent:
            self.stopped, self._sent = True, sent.request
        except TrainingStopped:
            self.stopped = True
        except BaseException as raised:
            if not self._goes_back_instead(raised):
                error = raised
                raise
        finally:
            self._running, self._resumed = False, None
            try:
                self._on_close.call_each(self)
            finally:
                if self._recording is not None:
                    self._recording.ended(error)
        return self._metrics

    def _goes_back_instead(self, raised: BaseException) -> bool:
        """Whether it was held by what it raised, and sent back from there."""
        try:
            if self._recording is not None:
                self._recording.raised(raised)
        except Sent as sent:
            self.stopped, self._sent = True, sent.request
        return self._sent is not None

    def _steps(self, data: Dataset, n: int) -> None:
        batches = self._batches(data)
        while self.loop_step < self.end_step and not self._stopping:
            if not self._step(batches):
                done = self.loop_step - self.start_step
                raise RuntimeError(f"{done} of {n} steps done: data {data.name!r} ended")

    def _epochs(self, data: Dataset, n: int) -> None:
        self._tell(self.epoch)
        while self.epoch < n and not self._stopping:
            batches, before = self._batches(data), self.loop_step
            while self._step(batches):
                if self._stopping:
                    return
            data.reset()
            self.epoch += 1
            self._on_epoch(self)
            if data.length is None:  # as many as in this epoch
                self.end_step = self.loop_step + (self.loop_step - before) * (n - self.epoch)
            else:  # another number may be accumulated from here on
                self.end_step = self._end_of(data, n)
            self._tell(self.epoch)

    def _step(self, batches: Iterator[Batch]) -> bool:
        """Train one step; False at the end of the data."""
        self._reached.reach(self.loop_step)
        if self._recording is not None:
            self._recording.boundary()
        group = self._drawn_for_step = []
        group.extend(islice(batches, self.trainer.accumulate))  # also of what raises midway
        if not group:
            return False
        begun = time.perf_counter()
        metrics = self.trainer.train_step(group)
        self._drawn_for_step = []
        if metrics is None:
            self._skip()
            return True
        self._n_skipped = 0
        self._metrics = metrics
        self.last_metrics.update(metrics)
        if self._recording is not None:
            self._recording.trained(metrics)
        self._is_done = True
        try:
            self._on_step(self, metrics)
            self._finite(self.loop_step, metrics["loss"])
        finally:
            self._is_done = False
            self.loop_step += 1
            self.train_step_durations.append(time.perf_counter() - begun)
        return True

    def _skip(self) -> None:
        self.skipped_steps += 1
        self._n_skipped += 1
        if self._n_skipped >= MOST_SKIPPED:
            raise NoChangeError(
                f"{MOST_SKIPPED} updates in a row were skipped before step {self.loop_step}: the "
                f"gradients are not finite at any scale"
            )

    def _tell(self, epoch: int) -> None:
        if self._recording is not None:
            end = self.end_step if self.end_step >= self.start_step else -1
            self._recording.expects(self.start_step, end, epoch)

    def _batches(self, data: Dataset) -> Iterator[Batch]:
        return iter(data) if self._recording is None else self._recording.batches(data)

    def _dataset(self, given: Iterable[Any]) -> Dataset:
        """The data as it was left, if it is the same as before."""
        known = self._data
        if known is None or (given is not known and given is not known.source):
            known = as_dataset(given)
        if self._last_data is None:
            self._unread = known.source, known.state_dict()
        if self._resumed is not None:
            state = self._resumed["data"]
            known.reset() if state is None else known.load_state_dict(state)
            if state is None and self._unread[0] is known.source:  # of before any was drawn
                known.load_state_dict(self._unread[1])
        self._data = self._last_data = known
        return known

    def _end_of(self, data: Dataset, n_epochs: int) -> int:
        if data.length is None:
            return -1
        of_epoch = -(-data.length // self.trainer.accumulate)
        done = -(-data.position // self.trainer.accumulate)
        return self.loop_step + of_epoch * (n_epochs - self.epoch) - done

    def _check_idle(self) -> None:
        self._check_elsewhere()
        if self._running:
            raise RuntimeError("the loop runs already; stop() it, or wait() for it")


def _whole(n: Any, where: str) -> int:
    """The number of steps or epochs, of any kind of integer."""
    try:
        return index(n)
    except TypeError:
        raise TypeError(
            f"{where}(data, n) with n={_short(n)}: a whole number is expected"
        ) from None


def _short(value: Any) -> str:
    return repr(value) if isinstance(value, int | float | str) else type(value).__name__
