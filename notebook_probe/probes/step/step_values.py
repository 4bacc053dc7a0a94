"""Values of a step as a whole: what was logged in it, how long it took, the memory it needed."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from notebook_probe.probes.step.frame import StepFrame

__all__ = ["AT_END", "LoggedSource", "StepSource", "read_at_end", "step_source"]


def _seconds(frame: StepFrame) -> float:
    return time.perf_counter() - frame.begun


def _peak_bytes(frame: StepFrame) -> float:
    """Return CUDA's peak if in use (asking would initialize it); else that of this process."""
    if torch.cuda.is_initialized():
        return float(torch.cuda.max_memory_allocated())
    import resource  # not on Windows, where this is a gap

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return float(peak if sys.platform == "darwin" else 1024 * peak)


def _used_bytes(frame: StepFrame) -> float:
    """Return the memory in use: of the CUDA device by all processes, or of this process."""
    if torch.cuda.is_initialized():
        free, total = torch.cuda.mem_get_info()
        return float(total - free)
    # Not on other systems, where this is a gap.
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    return float(pages * os.sysconf("SC_PAGE_SIZE"))


class _HostShare:
    """Processor time of this process over that of all cores, since it was asked before."""

    def __init__(self) -> None:
        self._before = time.perf_counter(), time.process_time()

    def __call__(self) -> float:
        now = time.perf_counter(), time.process_time()
        (begun, used), self._before = self._before, now
        passed = (now[0] - begun) * (os.cpu_count() or 1)
        return min(1.0, (now[1] - used) / passed) if passed > 0 else 0.0


_host_share = _HostShare()


def _busy_share(frame: StepFrame) -> float:
    """Return the utilization of the CUDA device by NVML, or the processor share of this process."""
    if torch.cuda.is_initialized():
        return torch.cuda.utilization() / 100.0
    return _host_share()


def _device_watts(frame: StepFrame) -> float:
    """Return what the CUDA device draws, by NVML."""
    if not torch.cuda.is_initialized():
        raise RuntimeError("no CUDA device is in use")
    return torch.cuda.power_draw() / 1000.0


AT_END: dict[str, Callable[[StepFrame], float]] = {
    "step_seconds": _seconds,
    "peak_bytes": _peak_bytes,
    "used_bytes": _used_bytes,
    "busy_share": _busy_share,
    "device_watts": _device_watts,
}
"""Readers of what is needed when a step ends, by feature."""


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
    """Source of what was logged under a name, or with none of everything."""

    name: str

    def state(self, frame: StepFrame) -> Any:
        return frame.scalars.get(self.name) if self.name else frame.scalars or None


def step_source(tensor: str) -> StepSource | LoggedSource:
    """Return the source of a feature of the step.

    >>> step_source("logged.loss"), step_source("step_seconds")
    (LoggedSource(name='loss'), StepSource(name='step_seconds'))
    """
    family, _, key = tensor.partition(".")
    return LoggedSource(key) if family == "logged" else StepSource(tensor)
