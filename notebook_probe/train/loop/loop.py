"""The loop: steps and epochs, with hooks around them."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from notebook_probe.alerts import Rule
from notebook_probe.record.store.location import Location
from notebook_probe.run.actions.former_names import FormerNames
from notebook_probe.run.background import Background
from notebook_probe.run.run import Run
from notebook_probe.run.watch import watch
from notebook_probe.schedules import ScheduleLike
from notebook_probe.schedules import schedule as read_schedule
from notebook_probe.train.checkpoints.fitting import Wanted
from notebook_probe.train.checkpoints.index import Checkpoint
from notebook_probe.train.checkpoints.retained import Kept
from notebook_probe.train.data.dataset import Dataset, for_evaluation
from notebook_probe.train.gradient_mode import gradient_mode_kept
from notebook_probe.train.loop.counts import epochs, whole
from notebook_probe.train.loop.gomlx_names import GomlxNames
from notebook_probe.train.loop.hooks import Hook, LoopHooks, OnStep, Periodic
from notebook_probe.train.loop.progress import Progress
from notebook_probe.train.loop.recording import Recording
from notebook_probe.train.loop.results import LoopResults
from notebook_probe.train.loop.rewinding import Rewinding
from notebook_probe.train.loop.runner import LoopRunner
from notebook_probe.train.loop.stopping import CheckFinite, StopOn
from notebook_probe.train.metrics.averages import Value
from notebook_probe.train.metrics.metrics import Metrics
from notebook_probe.train.trainer.trainer import Trainer
from notebook_probe.uninterrupted import uninterrupted

__all__ = ["Loop"]

FASTEST_S = 0.001
"""Step duration that is reported before there is one."""


class Loop(GomlxNames, FormerNames):
    """Training loop: steps and epochs over data, with hooks.

    Parameters
    ----------
    trainer : Trainer
    run : Run, optional
        Run that records the training; `watch` makes one.
    progress : bool, optional
        Show a progress bar of tqdm; by default in a terminal, and in a notebook that shows no
        panel.
    check_finite : True, "now" or False
        Action if a loss is NaN or infinite: True raises, on an accelerator at most one step late;
        "now" waits for the device to raise at once; False does nothing.

    Attributes
    ----------
    shared_data : dict
        Data that all hooks share.
    kept : Kept
        Saved and loaded checkpoints, with their locations.

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

    _owner = "a loop"
    _former = MappingProxyType({"detach": "remove() of the hook that was added"})

    def __init__(
        self,
        trainer: Trainer,
        run: Run | None = None,
        check_finite: CheckFinite = True,
        progress: bool | None = None,
    ) -> None:
        _check_given(trainer, run)
        self.trainer = trainer
        self.shared_data: dict[str, Any] = {}
        self._hooks, self._results = LoopHooks(), LoopResults(trainer)
        self._runner = LoopRunner(self, trainer, self._hooks, self._results, check_finite)
        self._rewinding = Rewinding(self, self._runner, self._hooks)
        self.kept = Kept(self)
        self.add(Progress(progress))
        if run is not None:
            self.record_to(run)

    # ---------------------------------------------------------------- counters

    @property
    def n_updates(self) -> int:
        """Updates completed, also in `on_step`: the number of the model's state."""
        return self.trainer.global_step

    @property
    def loop_step(self) -> int:
        """The next step; in `on_step` the step just completed."""
        return self._runner.loop_step

    @property
    def start_step(self) -> int:
        """First step of this run of the loop."""
        return self._runner.start_step

    @property
    def end_step(self) -> int:
        """The step after the last one of this run of the loop; -1 if unknown."""
        return self._runner.end_step

    @property
    def epoch(self) -> int:
        """Epochs completed in this run of the loop: the 0-based number of the current one."""
        return self._runner.epoch

    @property
    def skipped_steps(self) -> int:
        """Attempts that led to no update."""
        return self._runner.skipped_steps

    @property
    def train_step_durations(self) -> array[float]:
        """Seconds of each step of this run of the loop, hooks included."""
        return self._runner.durations

    @property
    def stopped(self) -> bool:
        """True if the last run of the loop was ended by Stop, by `stop`, or by Ctrl-C."""
        return self._runner.stopped

    @property
    def stop_reason(self) -> str:
        """Reason given to `stop`, or ""."""
        return self._runner.stop_reason

    @property
    def replaying(self) -> bool:
        """True while earlier steps are trained again, to return to one of them."""
        return self._rewinding.replaying

    def median_train_step_duration(self) -> float:
        """Return the upper median of the durations in s; 1 ms before there is one."""
        durations = sorted(self.train_step_durations)
        return durations[len(durations) // 2] if durations else FASTEST_S

    # ---------------------------------------------------------------- running

    def run_steps(self, data: Iterable[Any], n: int) -> Metrics[Value] | None:
        """Train ``n`` steps; return the metrics of the last one.

        The data is never restarted: the next call continues where this one ended. If ``n`` is not
        positive, it does nothing and returns None.

        Raises
        ------
        RuntimeError
            The data ended too early.
        """
        n = whole(n, "run_steps")
        if n <= 0:
            return None
        return self._rewinding.run_on(self._runner.begin(data), self._runner.n_steps(n))

    def run_to_global_step(self, data: Iterable[Any], step: int) -> Metrics[Value] | None:
        """Train until ``loop_step`` is ``step``."""
        return self.run_steps(data, whole(step, "run_to_global_step") - self.loop_step)

    def run_epochs(self, data: Iterable[Any], n: int) -> Metrics[Value] | None:
        """Train ``n`` epochs, each to the end of the data, which then starts again.

        After `load_state_dict` it continues in the epoch, and at the batch, of the checkpoint. If
        ``n`` is not positive, it does nothing and returns None.

        Warns
        -----
        UserWarning
            ``n`` is negative, or the data has length 0: nothing is trained.
        """
        n = epochs(data, n)
        if n <= 0:
            return None
        return self._rewinding.run_on(self._runner.begin(data), self._runner.n_epochs(n))

    def start(
        self, data: Iterable[Any], *, steps: int | None = None, epochs: int | None = None
    ) -> Background:
        """Train in the background, so that the notebook stays free; ``wait()`` returns the metrics.

        ``wait(step=100)`` waits only until that step. A stop is valid from here on: if it comes
        before the thread has begun, no batch is drawn.

        Raises
        ------
        ValueError
            Not exactly one of ``steps`` and ``epochs`` is given.
        RuntimeError
            The loop is already running.
        """
        if (steps is None) == (epochs is None):
            raise ValueError(f"start(steps={steps}, epochs={epochs}): one of them is expected")
        n = epochs if steps is None else steps
        if n is None or n <= 0:
            return self._rewinding.background(lambda: None)
        plan = self._runner.n_epochs(n) if steps is None else self._runner.n_steps(n)
        train = partial(self._rewinding.run_on, self._runner.begin(data), plan)
        with uninterrupted:  # the loop runs if, and only if, a thread has taken it over
            self._runner.running = True
            try:
                return self._rewinding.background(train)
            except BaseException:
                self._runner.running = False
                raise

    def stop(self, reason: str = "") -> None:
        """End the run of the loop after the current step; from any thread."""
        self._runner.stop(reason)

    # ---------------------------------------------------------------- hooks

    def on_start(
        self, call: Callable[[Any, Dataset], Any], name: str = "", priority: float = 0
    ) -> Hook:
        """Call ``call(loop, data)`` as each run of the loop begins."""
        return self._hooks.on_start.add(call, name, priority)

    def on_epoch(self, call: Callable[[Any], Any], name: str = "", priority: float = 0) -> Hook:
        """Call ``call(loop)`` after each epoch: ``loop.epoch`` epochs are complete.

        For example ``lambda loop: sampler.set_epoch(loop.epoch)`` for a distributed sampler.
        """
        return self._hooks.on_epoch.add(call, name, priority)

    def on_step(self, call: OnStep, name: str = "", priority: float = 0) -> Hook:
        """Call ``call(loop, metrics)`` after each step.

        Hooks are called by ascending priority, which may be negative, then in the order of
        registration. An error ends the training and names the hook.
        """
        return self._hooks.on_step.add(call, name, priority)

    def on_eval(
        self, call: Callable[[Any, Mapping[str, float]], Any], name: str = "", priority: float = 0
    ) -> Hook:
        """Call ``call(loop, metrics)`` after each evaluation, with the recorded names."""
        return self._hooks.on_eval.add(call, name, priority)

    def on_end(
        self,
        call: Callable[[Any, Mapping[str, Value] | None], Any],
        name: str = "",
        priority: float = 0,
    ) -> Hook:
        """Call ``call(loop, metrics)`` when all steps are done; metrics are None without a step."""
        return self._hooks.on_end.add(call, name, priority)

    def on_close(self, call: Callable[[Any], Any], name: str = "", priority: float = 0) -> Hook:
        """Call ``call(loop)`` at the end of the run of the loop, even after an error."""
        return self._hooks.on_close.add(call, name, priority)

    def at(
        self,
        schedule: ScheduleLike,
        call: OnStep,
        name: str = "",
        priority: float = 0,
        call_on_end: bool = False,
    ) -> Hook:
        """Call ``call(loop, metrics)`` when a schedule of completed updates is due.

        Parameters
        ----------
        schedule : Schedule, str, int or callable
            Schedule as for probes: 100 is after updates 100, 200, ..., counted over all runs of the
            loop, as in ``Checkpoints(every=100)``; ``"geometric(100, 1.2)"``, ``nbp.Times(20)``.
        call_on_end : bool
            Call it again when all steps are done.

        Raises
        ------
        ScheduleError, TypeError
        """
        periodic = Periodic(read_schedule(schedule), call, call_on_end)
        return self._hooks.at(periodic, name, priority)

    def add(self, callback: Any) -> Any:
        """Add an object whose methods with names of hooks become hooks; return the object.

        The names are ``on_start``, ``on_epoch``, ``on_step``, ``on_eval``, ``on_end`` and
        ``on_close``. Its ``name`` and ``priority`` apply to all of them. If it has ``state_dict``
        and ``load_state_dict``, its state is in checkpoints. If it has ``only_one = True``, a
        second object of its class raises an error when the loop begins to run.

        Raises
        ------
        TypeError
            The object has none of these methods.
        """
        return self._hooks.add(callback)

    def register_state(self, name: str, one: Any) -> None:
        """Add an object's state to every checkpoint: averaged weights, an optimizer.

        Raises
        ------
        TypeError
            The object has no ``state_dict`` and ``load_state_dict``.
        DuplicateNameError
            Another object has the name.
        """
        self._hooks.register_state(name, one)

    @property
    def objects(self) -> dict[str, Any]:
        """Objects whose state is in checkpoints, by name."""
        return self._hooks.objects

    # ---------------------------------------------------------------- recording

    @property
    def run(self) -> Run | None:
        """The run that records the training."""
        return self._results.run

    @property
    def recording(self) -> Recording | None:
        """Recording that passes results to the run; setting None ends it."""
        return self._results.recording

    @recording.setter
    def recording(self, recording: Recording | None) -> None:
        self._results.recording = recording

    @property
    def last_metrics(self) -> Metrics[Value]:
        """Newest value of each reported number, by its recorded name."""
        return self._results.last_metrics

    @last_metrics.setter
    def last_metrics(self, metrics: Mapping[str, Value]) -> None:
        self._results.last_metrics = Metrics(metrics)

    @property
    def records_metrics(self) -> bool:
        """True if the metrics of every step are recorded."""
        return self.recording is not None and self._results.has_metrics

    @property
    def evaluated_data(self) -> Dataset | None:
        """Data of the last evaluation."""
        return self._results.evaluated_data

    def watch(self, *, metrics: bool | None = None, **options: Any) -> Run:
        """Watch the model, as `notebook_probe.watch` does, and record the training there.

        If a loop continues from a checkpoint, so does the record at its step. For ``metrics``
        see `record_to`.
        """
        if self.loop_step and options.get("store") is not None and "resume" not in options:
            options.setdefault("step", self.loop_step)
        run = watch(self.trainer.model, self.trainer.optimizer, **options)
        self.record_to(run, metrics=metrics)
        return run

    def record_to(self, run: Run, *, metrics: bool | None = None) -> None:
        """Record losses, metrics, targets, waiting times and evaluations in your run.

        With ``metrics=False`` only the loop's callbacks record the metrics of single steps, until
        the next call.
        """
        self._results.record_to(run, metrics)
        run.controls.offer_way_back(self._rewinding)

    def explore(self) -> Any:
        """Show the Explorer of the run; watch the model first if needed."""
        run = self.run if self.run is not None else self.watch()
        return run.explore()

    def eval(self, data: Any) -> Metrics[float]:
        """Evaluate the current model, as `Trainer.eval` does, and record the result at this state.

        The numbers are named after the data: ``eval_loss``, ``test_accuracy``.
        """
        data = for_evaluation(data)
        metrics = self.trainer.eval(data)
        self._results.evaluated_data = data
        self.evaluated({f"{data.name}_{name}": value for name, value in metrics.items()})
        return metrics

    def evaluated(self, metrics: Mapping[str, float]) -> None:
        """Record metrics of an evaluation of the current model, under the given names.

        They are recorded at this state, belong to a checkpoint of it, and are passed to `on_eval`.
        `eval` calls this itself.
        """
        self._results.evaluated(metrics)
        self._hooks.on_eval(self, metrics)

    def eval_every(self, data: Any, every: ScheduleLike | None = None) -> Hook:
        """Evaluate after each epoch, or when a schedule is due, as in `at`.

        Examples
        --------
        >>> loop.eval_every(test_data)  # doctest: +SKIP
        >>> loop.eval_every(Dataset(other, "val"), 500)  # doctest: +SKIP
        >>> loop.eval_every(test_data, "times(20)")  # doctest: +SKIP
        """
        data = for_evaluation(data)
        name = f"eval {data.name}"
        if every is None:
            return self.on_epoch(lambda loop: loop.eval(data), name)
        return self.at(every, lambda loop, metrics: loop.eval(data), name)

    def stop_on(self, *rules: str | Rule) -> Hook:
        """End the run of the loop after the step in which one of these alerts is found.

        The end is within about a second of the alert's step, because rules are applied while rows
        are written.

        Raises
        ------
        RuntimeError
            No run records the training.
        UnknownNameError
            No rule has this name.

        Examples
        --------
        >>> loop.stop_on("diverging_loss", "dead_units")  # doctest: +SKIP
        """
        if self.run is None:
            raise RuntimeError("stop_on: alerts are found in the record; call watch() first")
        return self.on_step(StopOn(self.run, rules).on_step, f"stop on {rules}")

    # ---------------------------------------------------------------- continuing later

    @gradient_mode_kept()
    def save_checkpoint(self, folder: Location, *, background: bool = False) -> None:
        """Save the current state of training permanently, between two steps or in a hook.

        A training that continues from it equals one that never stopped, bit for bit. It contains
        the model, optimizer, scheduler, scaler, metrics, random generators, the position in the
        data, the newest metrics, the location and step of the record, and the states of
        `register_state`. Inside `on_step` it is the state after that step. With several processes,
        each calls it, and the first one writes.

        Parameters
        ----------
        folder : path, URL, zarr Store or RemoteStore
        background : bool
            Have a thread write the copies; the next save waits for it and raises its error.

        Raises
        ------
        CheckpointError
            The checkpoint cannot be written, or a part of it could be read back only by running
            code.
        """
        self.kept.save(folder, background=background)

    @gradient_mode_kept()
    def load_checkpoint(
        self,
        folder: Location,
        step: int | None = None,
        *,
        to_restore: Wanted = None,
        renames: Mapping[str, str] | None = None,
        strict: bool = True,
    ) -> Checkpoint:
        """Continue from a checkpoint: the next run of the loop restores everything.

        Nothing of the file is run as code. `watch` with the ``store`` of the record then continues
        it at the step of the checkpoint.

        Parameters
        ----------
        folder : path, URL, zarr Store or RemoteStore
            Folder of the checkpoints, or one file in it.
        step : int, optional
            Step of the state to load; by default the one that was saved last.
        to_restore : names, compiled regex or callable, optional
            Load only these weights, by their names in the checkpoint, and do not change the rest:
            optimizer, counters, generators.
        renames : dict of str to str, optional
            Names in the checkpoint to names in the model.
        strict : bool
            If False and not all weights fit, load the fitting ones, warn about the others, and
            change nothing else.

        Raises
        ------
        CheckpointError
            There is no checkpoint, it cannot be read, or it does not fit; the message lists missing
            and extra entries, and other shapes. Nothing was changed.
        ValueError
            A name is unknown.
        RuntimeError
            The loop runs.
        """
        self._runner.check_idle()
        return self.kept.load(folder, step, to_restore, renames, strict)

    @property
    def checkpoints(self) -> list[Checkpoint]:
        """Checkpoints in every folder that this loop has used: step, path, metrics."""
        return self.kept.saved()

    @gradient_mode_kept()
    def rewind(self, step: int, data: Any = None, **options: Any) -> Run | None:
        """Go back to an earlier step and continue from there, for example to measure more.

        Loads the newest checkpoint at or before the step, and trains the steps in between again
        without recording them twice. Every number is equal bit for bit; the recorded ``loss`` is
        compared. The next run of the loop then continues at ``step``, on a branch of the record.

        Hooks are called in these steps, as they may have changed the training; ``replaying`` is
        True meanwhile. Values of `Run.set` are set again at the same steps. Knobs of the run get
        the values that they had at that step.

        Parameters
        ----------
        step : int
            Updates completed at the state to go back to.
        data : iterable, optional
            Training data; by default the data of the last run of the loop.
        **options
            Options of `notebook_probe.watch` for the branch: ``probes={"*": ["rms"]}``.

        Returns
        -------
        Run or None
            The run of the branch; None without a record.

        Raises
        ------
        CheckpointError
            This training has no checkpoint at or before the step.
        ValueError
            The step was not reached, or there are options but no record.
        RuntimeError
            The loop runs.

        Warns
        -----
        ReplayWarning
            A loss differs from the record, from a step on; or a value could not be set again.

        Examples
        --------
        >>> run = loop.rewind(900, probes=["default", "activations"])  # doctest: +SKIP
        >>> loop.run_epochs(loader, 10)  # doctest: +SKIP
        """
        return self._rewinding.rewind(step, data, options)

    def begin_at(self, step: int) -> None:
        """Begin at a number of updates, after loading only the weights of another training.

        A scheduler is stepped as many times; data and generators are not changed.

        Raises
        ------
        ValueError
            Updates have been counted already.
        RuntimeError
            The loop runs.
        """
        self._runner.begin_at(step)

    def state_dict(self) -> dict[str, Any]:
        """Return the positions of the loop and of its data, and the random generators.

        In `on_step` the current step is included. Batches of a step that raised are drawn again.
        """
        return self._runner.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from `state_dict`; data and generators are restored when the next run starts."""
        self._runner.load_state_dict(state)

    def state_metrics(self) -> dict[str, float]:
        """Return the metrics of the current state: of its last step, and of evaluations."""
        return self._results.state_metrics()

    def look_back(self, state: Mapping[str, Any] | None) -> None:
        """Continue quantities of this or the next run with their state in a checkpoint."""
        self._results.look_back(state)


def _check_given(trainer: object, run: object) -> None:
    if not isinstance(trainer, Trainer):
        raise TypeError(f"Loop({type(trainer).__name__}): a Trainer(model, ...) is expected")
    if run is not None and not isinstance(run, Run):
        raise TypeError(
            f"Loop(trainer, run={type(run).__name__}): what nbp.watch returns is expected; "
            f"data is given to run_steps and run_epochs"
        )
