"""Reports of a loop to the run that records it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from notebook_probe.record.write.closing import losses_as_warnings
from notebook_probe.run.run import Run
from notebook_probe.train.data.batch import Batch
from notebook_probe.train.data.dataset import Dataset
from notebook_probe.train.metrics.averages import Value
from notebook_probe.train.trainer.listener import KnobOfTrainer

__all__ = ["Recording"]


class Recording:
    """Pass losses, metrics and waiting times to a run, while it is open.

    Parameters
    ----------
    run : Run
    metrics : bool
        Record the metrics of every step, too.
    """

    def __init__(self, run: Run, metrics: bool = True) -> None:
        self.run, self._has_metrics = run, metrics

    def knob(self, knob: KnobOfTrainer) -> None:
        """Register a number that can be set from now on."""
        if not self.run.closed:
            self.run.knob(*knob)

    def batches(self, data: Dataset) -> Iterator[Batch]:
        """Return the data, and measure the time spent waiting for it."""
        return iter(data) if self.run.closed else iter(self.run.batches(data))

    def batch(self, **values: Any) -> None:
        """Pass on a batch before its training, or the losses of its samples."""
        if not self.run.closed:
            self.run.batch(**values)

    def boundary(self) -> None:
        """Apply Pause, Step and Stop, before a batch is drawn."""
        if not self.run.closed:
            self.run.boundary()

    def expects(self, start_step: int, end_step: int, epoch: int) -> None:
        """Set how far the loop is and will go."""
        if not self.run.closed:
            self.run.expect(start_step=start_step, end_step=end_step, epoch=epoch)

    def trained(self, metrics: Mapping[str, Value]) -> None:
        """Record a complete step."""
        if self._has_metrics and not self.run.closed:
            self.run.log(metrics)

    def evaluated(self, metrics: Mapping[str, float]) -> None:
        """Record an evaluation of the state between two steps."""
        if not self.run.closed:
            self.run.log(metrics, phase="eval")

    def raised(self, error: BaseException) -> None:
        """Report an exception that is about to end the loop; a breakpoint may pause it before."""
        if not self.run.closed:
            self.run.controls.loop_raised(error)

    def ended(self, error: BaseException | None) -> None:
        """End the steps for now: write the record, or warn why not."""
        if not self.run.closed:
            self.run.controls.settle(error)
            with losses_as_warnings():
                self.run.flush()
