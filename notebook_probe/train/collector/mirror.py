"""Copy of collected numbers in the record of the run that watches the model."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from torch import nn

from notebook_probe.errors import ClosedRunError, ProbeError, RecordWarning
from notebook_probe.quantities.reduce.stat import Number
from notebook_probe.run.begin.earlier import run_of
from notebook_probe.train.collector.executor import Step
from notebook_probe.train.collector.series import Collected
from notebook_probe.train.collector.transfer import OnDevice

__all__ = ["CollectorMirror"]


class CollectorMirror:
    """Log collected numbers of training steps to the run that watches the model, if any.

    The record has one float32 number of a series at a step: the mean of those that the step had
    when it was complete. A series that the loop or another collector has is ``x_2`` there.
    """

    def __init__(self) -> None:
        self._refused: set[str] = set()

    def show(
        self, model: nn.Module | None, step: Step, values: Sequence[tuple[str, Collected]]
    ) -> None:
        """Log the values of a step; warn once about values that cannot be logged."""
        run = run_of(model) if step.is_training and model is not None else None
        if run is None:
            return
        by_series: dict[str, list[Collected]] = {}
        for series, value in values:
            if series not in step.mirrored and series not in self._refused:
                by_series.setdefault(series, []).append(value)
        step.mirrored |= by_series.keys()
        for series, several in by_series.items():
            try:
                run.controls.log_of(self, {series: _mean(several)})
            except ClosedRunError:  # by another thread, just now
                return
            except ProbeError as error:
                self._refused.add(series)
                warnings.warn(
                    f"series {series!r} is collected, but not recorded: {error}",
                    RecordWarning,
                    stacklevel=2,
                )


def _mean(values: Sequence[Collected]) -> Number:
    """Return the mean of host or device numbers, without waiting for a device."""
    numbers = [_number(value) for value in values]
    return numbers[0] if len(numbers) == 1 else sum(numbers) / len(numbers)


def _number(value: Collected) -> Number:
    tensor = value.tensor if isinstance(value, OnDevice) else None
    return float(value) if tensor is None else tensor
