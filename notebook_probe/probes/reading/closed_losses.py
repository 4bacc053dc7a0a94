"""Losses of closed steps on their way to the record, many together.

Every step has one, also where nothing is due, so that one must cost next to nothing: it waits here
as it is, a number or a tensor, and what has waited is stacked, copied and handed on at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from notebook_probe.probes.reading.host_copy import HostBatch
from notebook_probe.quantities.reduce.stat import Number

__all__ = ["ClosedLosses", "LossRows"]


@dataclass(slots=True)
class LossRows:
    """Losses, and the steps that they are of, in their order.

    Attributes
    ----------
    steps, times_ms : list of int
    losses : list of float
        Once they are on the host.
    """

    steps: list[int] = field(default_factory=list)
    times_ms: list[int] = field(default_factory=list)
    losses: list[Number] = field(default_factory=list)

    def add(self, step: int, time_ms: int, loss: Number) -> None:
        self.steps.append(step)
        self.times_ms.append(time_ms)
        self.losses.append(loss)

    def extend(self, later: LossRows) -> None:
        self.steps += later.steps
        self.times_ms += later.times_ms
        self.losses += later.losses

    def __len__(self) -> int:
        return len(self.steps)


class ClosedLosses:
    """Losses that wait; as soon as one is on a device the others wait behind it."""

    def __init__(self) -> None:
        self._on_host, self._waiting = LossRows(), LossRows()
        self._coming: tuple[LossRows, dict[torch.device, HostBatch]] | None = None
        self.are_elsewhere = False
        """Some are on a device, or on their way."""

    def add(self, step: int, time_ms: int, loss: Number) -> None:
        """Keep the loss of a step, later than those before."""
        self.are_elsewhere |= isinstance(loss, Tensor)
        (self._waiting if self.are_elsewhere else self._on_host).add(step, time_ms, loss)

    def __len__(self) -> int:
        """Return the number of losses on the host."""
        return len(self._on_host.steps)

    def take(self) -> LossRows:
        """Return the losses on the host."""
        taken, self._on_host = self._on_host, LossRows()
        return taken

    @property
    def are_coming(self) -> bool:
        return self._coming is not None

    @property
    def have_come(self) -> bool:
        """True if finishing the copy that was begun takes no waiting."""
        return self._coming is None or all(one.has_come for one in self._coming[1].values())

    def begin_copy(self) -> None:
        """Begin to copy those on a device, unless some are being copied."""
        if self._coming is not None or not len(self._waiting):
            return
        rows, self._waiting = self._waiting, LossRows()
        by_device: dict[torch.device, list[Tensor]] = {}
        for loss in rows.losses:
            if isinstance(loss, Tensor):
                by_device.setdefault(loss.device, []).append(loss)
        batches = {device: HostBatch([torch.stack(those)]) for device, those in by_device.items()}
        self._coming = rows, batches

    def finish_copy(self) -> None:
        """Finish the copy, and wait for it."""
        coming, self._coming = self._coming, None
        if coming is None:
            return
        rows, batches = coming
        numbers = {device: iter(_numbers(batch)) for device, batch in batches.items()}
        rows.losses = [
            next(numbers[loss.device]) if isinstance(loss, Tensor) else loss for loss in rows.losses
        ]
        self._on_host.extend(rows)
        self.are_elsewhere = bool(self._waiting.steps)


def _numbers(batch: HostBatch) -> list[float]:
    """Return the numbers of the one tensor in the batch."""
    (found,) = batch.values()
    return found.tolist() if isinstance(found, Tensor) else [found]
