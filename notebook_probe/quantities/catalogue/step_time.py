"""Time and memory of a step."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

from torch import Tensor, nn

from notebook_probe.quantities.define import questions
from notebook_probe.quantities.define.window import window_quantity
from notebook_probe.quantities.reduce.reductions import reduction

__all__ = [
    "BatchRows",
    "DataWaitShare",
    "DeviceMemory",
    "DevicePower",
    "DeviceUtilization",
    "PeakMemory",
    "SamplesPerSecond",
    "StepTime",
    "rows",
]


@dataclass(slots=True)
class BatchRows:
    """Length of tensors along their first axis."""

    n: int

    def merge(self, other: BatchRows) -> BatchRows:
        """Return the length of both together."""
        return BatchRows(self.n + other.n)


@reduction("rows", first_only=True, cost="scalar")
def rows(
    tensor: Tensor, module: nn.Module | None = None, wanted: frozenset[str] = frozenset()
) -> BatchRows:
    """Count the samples of a batch; a tensor without axes is one.

    Examples
    --------
    >>> import torch
    >>> rows(torch.zeros(32, 3, 8, 8))
    BatchRows(n=32)
    """
    return BatchRows(tensor.size(0) if tensor.dim() else 1)


@window_quantity(units="s", source="GoMLX", question=questions.SPEED)
class StepTime:
    """Time of a step, ``median(seconds)`` of the steps since the last due one.

    From where a step begins to where the next one does, with everything the loop does between:
    loading, validation, pictures. Pauses do not count. A median, so that one long step
    does not hide what is usual.

    Warnings
    --------
    On an accelerator work is only queued: a step's own time may show in a later one, and their
    median is right all the same.
    """

    def reset(self) -> None:
        self._seconds: list[float] = []

    def update(self, step_seconds: float) -> None:
        self._seconds.append(step_seconds)

    def compute(self) -> float | None:
        # The median: saving a checkpoint or waiting once must not look like a slower step.
        return median(self._seconds) if self._seconds else None


@window_quantity(source="definition", question=questions.DATA, bounds=(0, 1))
class DataWaitShare:
    """Share of the time spent waiting for data, ``wait / seconds``, since the last due step.

    Measured in loops over ``run.batches(loader)``, where the waiting can be seen. Near 0 the loader
    keeps up; above 0.3 more workers, a larger ``prefetch_factor`` or cheaper transforms make
    training faster.

    Warnings
    --------
    With workers that prefetch, the wait appears only once their store of batches is used up.
    """

    def reset(self) -> None:
        self._waited = self._seconds = 0.0

    def update(self, wait_seconds: float, step_seconds: float) -> None:
        self._waited += wait_seconds
        self._seconds += step_seconds

    def compute(self) -> float | None:
        return self._waited / self._seconds if self._seconds else None


@window_quantity(units="1/s", source="definition", question=questions.SPEED, cost="scalar")
class SamplesPerSecond:
    """Number of samples trained per second, ``n / seconds``, since the last due step.

    Samples are counted along the first axis of the model's input, over all calls. Compare batch
    sizes by it: where it no longer grows the device is busy.

    Warnings
    --------
    A model whose input has its time axis first counts positions.
    """

    def reset(self) -> None:
        self._n, self._seconds = 0, 0.0

    def update(self, input_rows: BatchRows, step_seconds: float) -> None:
        self._n += input_rows.n
        self._seconds += step_seconds

    def compute(self) -> float | None:
        return self._n / self._seconds if self._seconds else None


@window_quantity(units="B", source="definition", question=questions.SPEED)
class PeakMemory:
    """The most memory in use so far, ``max(bytes)``: of the CUDA device, else of the process.

    On the device, the memory that torch's allocator gave out; it never falls unless you call
    ``torch.cuda.reset_peak_memory_stats()``, which is left to you. A step that lifts it late in
    training is a longer batch, or something that is kept.

    Warnings
    --------
    Of a process it holds all that is loaded, data too. Other processes on a device do not count.
    """

    def reset(self) -> None:
        self._largest = -math.inf

    def update(self, peak_bytes: float) -> None:
        self._largest = max(self._largest, peak_bytes)

    def compute(self) -> float | None:
        return self._largest if math.isfinite(self._largest) else None


@window_quantity(units="B", samples="due", source="definition", question=questions.SPEED)
class DeviceMemory:
    """Memory that is in use as a step ends, ``bytes``: of the CUDA device, else of the process.

    On the device it is the value of ``nvidia-smi``: it includes all processes, and memory that
    torch's allocator reserves without giving it out. If it grows while `peak_memory` does not,
    another process, or fragments, take the memory.

    Warnings
    --------
    Asking the driver takes up to a millisecond. The memory of a process is known on Linux only.
    """

    def reset(self) -> None:
        self._bytes: float | None = None

    def update(self, used_bytes: float) -> None:
        self._bytes = used_bytes

    def compute(self) -> float | None:
        return self._bytes


@window_quantity(samples="due", source="definition", question=questions.SPEED, bounds=(0, 1))
class DeviceUtilization:
    """Utilization of the CUDA device, else of all cores, ``busy seconds / seconds``.

    On the device it is the value of ``nvidia-smi``, for all processes over the last tenths of a
    second. Near 1 it always has work; far below, the host or the loader keeps it waiting: see
    `data_wait_share`. On a host it is the share of all cores that this process used since the
    previous reading.

    Warnings
    --------
    A device with one small kernel after the other is busy, too: it does not tell how well it is
    used. Of CUDA devices it needs the package nvidia-ml-py, and is missing without.
    """

    def reset(self) -> None:
        self._share: float | None = None

    def update(self, busy_share: float) -> None:
        self._share = busy_share

    def compute(self) -> float | None:
        return self._share


@window_quantity(units="W", samples="due", source="definition", question=questions.SPEED)
class DevicePower:
    """Power that the CUDA device draws as a step ends, ``watts``.

    It is what ``nvidia-smi`` shows: a mean over the last second on most devices, and of all
    processes. Far below the limit of the device the host, the loader or the memory keeps it
    waiting; where it stays at the limit, the device lowers its clock.

    Warnings
    --------
    It needs the package nvidia-ml-py, and is missing without a CUDA device. Asking the driver takes
    up to a millisecond.
    """

    def reset(self) -> None:
        self._watts: float | None = None

    def update(self, device_watts: float) -> None:
        self._watts = device_watts

    def compute(self) -> float | None:
        return self._watts
