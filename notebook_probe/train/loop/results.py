"""Results of a loop: its newest metrics, and passing them to the run that records it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from notebook_probe.run.run import Run
from notebook_probe.train.data.dataset import Dataset
from notebook_probe.train.loop.recording import Recording
from notebook_probe.train.metrics.averages import Value
from notebook_probe.train.metrics.metrics import Metrics
from notebook_probe.train.trainer.trainer import Trainer

__all__ = ["LoopResults"]


class LoopResults:
    """Newest results of a loop, passed to a run if there is one.

    Parameters
    ----------
    trainer : Trainer

    Attributes
    ----------
    last_metrics : dict
        The newest value of everything reported, by the name it is recorded under.
    of_run : dict or None
        Metrics of the last step of this run of the loop.
    has_metrics : bool
        The metrics of every step are recorded, where there is a recording.
    evaluated_data : Dataset or None
        Data of the last evaluation.
    """

    def __init__(self, trainer: Trainer) -> None:
        self._trainer = trainer
        self.last_metrics: Metrics[Value] = Metrics()
        self.of_run: Metrics[Value] | None = None
        self.has_metrics = True
        self.evaluated_data: Dataset | None = None
        self._recording: Recording | None = None
        self._looking_back: Mapping[str, Any] | None = None
        self._evaluated: tuple[int, dict[str, float]] = (-1, {})

    @property
    def run(self) -> Run | None:
        """The run that records the training."""
        return self._recording.run if self._recording is not None else None

    def record_to(self, run: Run, metrics: bool | None = None) -> None:
        """Record in a run from now on; ``metrics`` sets ``has_metrics``."""
        self.has_metrics = self.has_metrics if metrics is None else metrics
        self.recording = recording = Recording(run, self.has_metrics)
        for knob in self._trainer.knobs.values():
            recording.knob(knob)
        self.look_back(self._looking_back)

    def look_back(self, state: Mapping[str, Any] | None) -> None:
        """Continue quantities of this or the next run with their state in a checkpoint."""
        self._looking_back = state
        if state is not None and self.run is not None and not self.run.closed:
            self.run.load_state_dict(state)

    @property
    def recording(self) -> Recording | None:
        """Recording that passes results to the run; None records no more."""
        return self._recording

    @recording.setter
    def recording(self, recording: Recording | None) -> None:
        self._recording = self._trainer.listener = recording

    def trained(self, metrics: Metrics[Value]) -> None:
        """Note and record the metrics of a complete step."""
        self.of_run = metrics
        self.last_metrics.update(metrics)
        if self._recording is not None:
            self._recording.trained(metrics)

    def evaluated(self, metrics: Mapping[str, float]) -> None:
        """Note and record the metrics of an evaluation of the present state."""
        self.last_metrics.update(metrics)
        self._evaluated = self._trainer.global_step, {**self.of_evaluations(), **metrics}
        if self._recording is not None:
            self._recording.evaluated(metrics)

    def set_evaluations(self, metrics: Mapping[str, float]) -> None:
        """Set the metrics of evaluations of the present state, as a checkpoint has them."""
        self._evaluated = self._trainer.global_step, dict(metrics)

    def state_metrics(self) -> dict[str, float]:
        """Return the metrics of the present state: of its last step, and of evaluations."""
        trained = {name: float(value) for name, value in (self.of_run or {}).items()}
        return {**trained, **self.of_evaluations()}

    def of_evaluations(self) -> dict[str, float]:
        """Return the metrics of evaluations of the present state."""
        step, evaluated = self._evaluated
        return evaluated if step == self._trainer.global_step else {}
