"""Transfer of measurements from an accelerator to the host: one copy for many steps.

On CUDA the copy goes to pinned memory while the training's own work continues; it is waited for
only on request, or has long been done when the next one begins.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import chain
from typing import Any

import torch
from torch import Tensor

from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.quantities.reduce.device_stat import DeviceStat

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
        # The present values: a step that is still open continues to be filled.
        self.on_device = [_mapped_frame(frame, lambda tensor: tensor) for frame in frames]
        self._tensors: dict[int, Tensor] = {}
        for frame in self.on_device:
            _mapped_frame(frame, self._note)
        by_device: dict[torch.device, list[Tensor]] = {}
        for tensor in self._tensors.values():
            by_device.setdefault(tensor.device, []).append(tensor)
        self._batches = [(group, HostBatch(group)) for group in by_device.values()]

    def _note(self, tensor: Tensor) -> Tensor:
        """Note a tensor to be copied, once for all numbers that are in it."""
        self._tensors[id(tensor)] = tensor
        return tensor

    @property
    def has_come(self) -> bool:
        """All numbers are on the host: asking for the frames will not wait."""
        return all(batch.has_come for _, batch in self._batches)

    def frames(self) -> list[StepFrame]:
        """Return the frames with numbers in place of tensors; waits for them."""
        numbers = {
            id(tensor): value
            for group, batch in self._batches
            for tensor, value in zip(group, batch.values(), strict=True)
        }
        return [
            _mapped_frame(frame, lambda tensor: numbers[id(tensor)]) for frame in self.on_device
        ]


class HostBatch:
    """The tensors of one device, flattened into one, on their way to the host as float64.

    Parameters
    ----------
    tensors : list of Tensor
    """

    def __init__(self, tensors: list[Tensor]) -> None:
        alike: dict[torch.dtype, list[int]] = {}
        for place, tensor in enumerate(tensors):
            alike.setdefault(tensor.dtype, []).append(place)
        self._places = [*chain(*alike.values())]
        self._shapes = [tensor.shape for tensor in tensors]
        self._event: torch.cuda.Event | None = None
        self._host: Tensor | None = None
        try:
            flats = [
                torch.cat([tensors[place].reshape(-1) for place in places]).double()
                for places in alike.values()
            ]
            self._host = self._copied(flats[0] if len(flats) == 1 else torch.cat(flats))
        except (NotImplementedError, RuntimeError):  # nothing can be read there: gaps
            self._host = None

    def _copied(self, flat: Tensor) -> Tensor:
        if flat.device.type != "cuda":
            return flat.cpu()
        host = torch.empty(flat.shape, dtype=flat.dtype, device="cpu", pin_memory=True)
        side = _side_stream(flat.device)
        side.wait_stream(torch.cuda.current_stream(flat.device))
        with torch.cuda.stream(side):
            host.copy_(flat, non_blocking=True)
            self._event = torch.cuda.Event()
            self._event.record(side)
        flat.record_stream(side)  # else its memory could be given out again meanwhile
        return host

    @property
    def has_come(self) -> bool:
        """Asking for the values will not wait."""
        return self._event is None or self._event.query()

    def values(self) -> list[Any]:
        """Return a number for each 0-d tensor, a tensor for any other; waits for them."""
        if self._event is not None:
            self._event.synchronize()
        found: list[Any] = [math.nan] * len(self._shapes)
        if self._host is None:
            return found
        start = 0
        for place in self._places:
            shape = self._shapes[place]
            stop = start + shape.numel()
            part = self._host[start:stop]
            found[place] = part.reshape(shape) if shape else part.item()
            start = stop
        return found


@cache
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    """Return the stream of the copies, separate from the training's own work."""
    return torch.cuda.Stream(device)


def _mapped_frame(frame: StepFrame, change: Callable[[Tensor], Any]) -> StepFrame:
    """Return a copy of a frame, each device tensor changed."""
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
    if isinstance(value, DeviceStat):
        return value.mapped(change)
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
