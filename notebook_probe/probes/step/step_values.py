"""Values of a step as a whole: what was logged in it, how long it took, the memory it needed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch

from notebook_probe.probes.step.frame import StepFrame

__all__ = ["AT_END", "LoggedSource", "StepSource", "read_at_end", "step_source"]


def _seconds(frame: StepFrame) -> float:
    return time.perf_counter() - frame.begun


def _peak_bytes(frame: StepFrame) -> float:
    """Of CUDA's allocator, where it is in use: asking would set it up; else of this process."""
    if torch.cuda.is_initialized():
        return float(torch.cuda.max_memory_allocated())
    import resource  # not on Windows, where this is a gap

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak if sys.platform == "darwin" else 1024 * peak)


AT_END: dict[str, Callable[[StepFrame], float]] = {
    "step_seconds": _seconds,
    "peak_bytes": _peak_bytes,
}
"""What is read when a step ends, if a due quantity needs it."""


def read_at_end(frame: StepFrame) -> None:
    """Read what due quantities need of the step that ends; what cannot be read is a gap."""
    for name in frame.plan.at_end if frame.plan is not None else ():
        with suppress(Exception):  # a driver's trouble is not the training's
            frame.of_step[name] = AT_END[name](frame)


@dataclass(frozen=True, slots=True)
class StepSource:
    """A value that was kept while the step was open, or read when it ended."""

    name: str

    def state(self, frame: StepFrame) -> Any:
        return frame.of_step.get(self.name)


@dataclass(frozen=True, slots=True)
class LoggedSource:
    """What was logged under a name, or with none everything that was."""

    name: str

    def state(self, frame: StepFrame) -> Any:
        return frame.scalars.get(self.name) if self.name else frame.scalars or None


def step_source(tensor: str) -> StepSource | LoggedSource:
    """Where a feature of the step comes from.

    >>> step_source("logged.loss"), step_source("step_seconds")
    (LoggedSource(name='loss'), StepSource(name='step_seconds'))
    """
    family, _, key = tensor.partition(".")
    return LoggedSource(key) if family == "logged" else StepSource(tensor)
