"""A loop that is recorded by a run: by which, and what it tells it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from notebook_probe.alerts import Rule
from notebook_probe.run.run import Run
from notebook_probe.run.watch import watch
from notebook_probe.train.data.dataset import Dataset, as_dataset
from notebook_probe.train.loop.hooked import Hooked
from notebook_probe.train.loop.hooks import Hook
from notebook_probe.train.loop.recording import Recording
from notebook_probe.train.loop.stopping import StopOn
from notebook_probe.train.metrics.averages import Value
from notebook_probe.train.trainer.trainer import Trainer

__all__ = ["Recorded"]


class Recorded(Hooked):
    """Hands on what a trainer does and finds to a run, if there is one.

    Parameters
    ----------
    trainer : Trainer
    """

    def __init__(self, trainer: Trainer) -> None:
        super().__init__()
        self.trainer = trainer
        self.loop_step = 0
        self.last_metrics: dict[str, Value] = {}
        self._recording: Recording | None = None
        self._has_metrics = True
        self._metrics: dict[str, Value] | None = None
        self.evaluated_data: Dataset | None = None  # the last
        self._evaluated: tuple[int, dict[str, float]] = (-1, {})
        self._is_done = False  # the step whose hooks run

    @property
    def run(self) -> Run | None:
        """The run that records the training."""
        return self._recording.run if self._recording is not None else None

    @property
    def records_metrics(self) -> bool:
        """The metrics of every step are recorded."""
        return self._recording is not None and self._has_metrics

    def watch(self, *, metrics: bool | None = None, **options: Any) -> Run:
        """Watch the model, as `notebook_probe.watch` does, and record the training there.

        Of a loop that goes on from a checkpoint the record goes on at its step. For ``metrics``
        see `record_to`.
        """
        if self.loop_step and options.get("store") is not None:
            options.setdefault("resume", self.loop_step)
        run = watch(self.trainer.model, self.trainer.optimizer, **options)
        self.record_to(run, metrics=metrics)
        return run

    def record_to(self, run: Run, *, metrics: bool | None = None) -> None:
        """Record losses, metrics, targets, waiting and evaluations in a run of your own.

        With ``metrics=False`` those of single steps are left to whoever takes part in the loop,
        until it is said otherwise.
        """
        self._has_metrics = self._has_metrics if metrics is None else metrics
        self._recording = self.trainer.listener = Recording(run, self._has_metrics)
        for knob in self.trainer.knobs.values():
            self._recording.knob(*knob)

    def detach(self) -> None:
        """Record no more."""
        self._recording = self.trainer.listener = None

    @property
    def n_updates(self) -> int:
        """Updates completed, also in `on_step`: the state that the model is in."""
        return self.loop_step + self._is_done

    def state_metrics(self) -> dict[str, float]:
        """What is known of the state that the model is in: its last step, evaluations of it."""
        trained = {name: float(value) for name, value in (self._metrics or {}).items()}
        return {**trained, **self._evaluations()}

    def _evaluations(self) -> dict[str, float]:
        """What is known of the state that the model is in from evaluations."""
        step, evaluated = self._evaluated
        return evaluated if step == self.n_updates else {}

    def explore(self) -> Any:
        """Show the Explorer of the run; watches the model first if nobody does."""
        run = self.run if self.run is not None else self.watch()
        return run.explore()

    def eval(self, data: Any) -> dict[str, float]:
        """Evaluate the model as it is now, as `Trainer.eval`; recorded at this state.

        Its numbers are called after the data: ``eval_loss``, ``test_accuracy``.
        """
        data = as_dataset(data, "eval")
        metrics = self.trainer.eval(data)
        self.evaluated_data = data
        self.evaluated({f"{data.name}_{name}": value for name, value in metrics.items()})
        return metrics

    def evaluated(self, metrics: Mapping[str, float]) -> None:
        """Tell what an evaluation of the model as it is now has found, by names of its own.

        It is recorded at this state, is known of a checkpoint of it, and `on_eval` hears of it;
        `eval` tells by itself.
        """
        self.last_metrics.update(metrics)
        self._evaluated = self.n_updates, {**self._evaluations(), **metrics}
        if self._recording is not None:
            self._recording.evaluated(metrics)
        self._on_eval(self, metrics)

    def eval_every(self, data: Any, n: int | None = None) -> Hook:
        """Evaluate after every ``n`` steps, on the grid of all steps; by default after each epoch.

        Examples
        --------
        >>> loop.eval_every(test_data)  # doctest: +SKIP
        >>> loop.eval_every(Dataset(other, "val"), 500)  # doctest: +SKIP
        """
        data = as_dataset(data, "eval")
        if n is None:
            return self.on_epoch(lambda loop: loop.eval(data), f"eval {data.name}")
        return self.every_n_steps(n, lambda loop, metrics: loop.eval(data), f"eval {data.name}")

    def stop_on(self, *rules: str | Rule) -> Hook:
        """End the run of the loop after the step in which one of these alerts is heard of.

        That is within a second or so of its step, as rules are applied while rows are written.

        Raises
        ------
        RuntimeError
            Nothing is recorded.
        UnknownNameError
            No rule of that name.

        Examples
        --------
        >>> loop.stop_on("diverging_loss", "dead_units")  # doctest: +SKIP
        """
        if self.run is None:
            raise RuntimeError("stop_on: alerts are found in what is recorded; watch() first")
        return self.on_step(StopOn(self.run, rules).on_step, f"stop on {rules}")
