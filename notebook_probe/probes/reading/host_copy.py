"""Bringing what was measured on an accelerator to the host: one copy for many steps.

On CUDA the copy goes to pinned memory beside the training's own work; it is waited for only when
somebody asks, or has long been done when the next one begins.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import torch
from torch import Tensor

from notebook_probe.probes.step.frame import StepFrame

__all__ = ["HostBatch", "HostCopy"]


class HostCopy:
    """Copies of some frames, their device tensors on the way to the host.

    Parameters
    ----------
    frames : iterable of StepFrame
        Left as they are.

    Attributes
    ----------
    on_device : list of StepFrame
        The frames as they were, whose numbers are still there.
    """

    def __init__(self, frames: Iterable[StepFrame]) -> None:
        # As they are now: a step that is still open goes on being filled.
        self.on_device = [_mapped_frame(frame, lambda tensor: tensor) for frame in frames]
        tensors = [tensor for frame in self.on_device for tensor in _tensors_of_frame(frame)]
        by_device: dict[torch.device, list[Tensor]] = {}
        for tensor in tensors:
            by_device.setdefault(tensor.device, []).append(tensor)
        self._batches = {device: HostBatch(group) for device, group in by_device.items()}

    @property
    def has_come(self) -> bool:
        """All numbers are on the host: asking for the frames will not wait."""
        return all(batch.has_come for batch in self._batches.values())

    def frames(self) -> list[StepFrame]:
        """The frames with numbers in place of tensors; waits for them."""
        numbers = {device: iter(batch.values()) for device, batch in self._batches.items()}
        return [
            _mapped_frame(frame, lambda tensor: next(numbers[tensor.device]))
            for frame in self.on_device
        ]


class HostBatch:
    """The tensors of one device, flattened into one, on their way to the host as float64.

    Parameters
    ----------
    tensors : list of Tensor
    """

    def __init__(self, tensors: list[Tensor]) -> None:
        self._shapes = [tensor.shape for tensor in tensors]
        self._event: torch.cuda.Event | None = None
        self._host: Tensor | None = None
        try:
            self._host = self._copied(torch.cat([t.reshape(-1).double() for t in tensors]))
        except (NotImplementedError, RuntimeError):  # nothing can be read there: gaps
            self._host = None

    def _copied(self, flat: Tensor) -> Tensor:
        if flat.device.type != "cuda":
            return flat.cpu()
        host = torch.empty(flat.shape, dtype=flat.dtype, pin_memory=True)
        host.copy_(flat, non_blocking=True)
        self._event = torch.cuda.Event()
        self._event.record(torch.cuda.current_stream(flat.device))
        return host

    @property
    def has_come(self) -> bool:
        """Asking for the values will not wait."""
        return self._event is None or self._event.query()

    def values(self) -> Iterator[Any]:
        """A number for each 0-d tensor, a tensor for any other; waits for them."""
        if self._event is not None:
            self._event.synchronize()
        if self._host is None:
            yield from (math.nan for _ in self._shapes)
            return
        start = 0
        for shape in self._shapes:
            stop = start + shape.numel()
            part = self._host[start:stop]
            yield part.reshape(shape) if shape else part.item()
            start = stop


def _tensors_of_frame(frame: StepFrame) -> list[Tensor]:
    found: list[Tensor] = []

    def note(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    _mapped_frame(frame, note)
    return found


def _mapped_frame(frame: StepFrame, change: Callable[[Tensor], Any]) -> StepFrame:
    """A copy of a frame, each device tensor changed, always in the same order."""
    mapped = copy.copy(frame)
    mapped.states = _mapped(frame.states, change)
    mapped.collected = _mapped(frame.collected, change)
    mapped.scalars = _mapped(frame.scalars, change)
    mapped.loss = _mapped(frame.loss, change)
    mapped.arrays = _mapped(frame.arrays, change)
    mapped.of_step = _mapped(frame.of_step, change)
    return mapped


def _mapped(value: Any, change: Callable[[Tensor], Any]) -> Any:
    if isinstance(value, Tensor):
        return value if value.is_cpu else change(value)
    if type(value) in (list, tuple):
        return type(value)(_mapped(one, change) for one in value)
    if isinstance(value, dict):
        return {key: _mapped(one, change) for key, one in [*value.items()]}
    if is_dataclass(value) and not isinstance(value, type):
        mapped = copy.copy(value)
        for field in fields(value):
            changed = _mapped(getattr(value, field.name), change)
            object.__setattr__(mapped, field.name, changed)  # of frozen ones, too
        return mapped
    return value
