"""Numbers of an accelerator on their way to the host, many in one copy."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from notebook_probe.probes.reading.host_copy import HostBatch

__all__ = ["Flight", "OnDevice", "Transfer"]

# 512 bytes are the least that torch's CUDA allocator gives.
BATCH = 256
"""Numbers in one copy: each takes 512 bytes of the device until then."""


class OnDevice:
    """A number that was on an accelerator when it was collected.

    Parameters
    ----------
    tensor : Tensor
        0-d, float64, nobody else's.
    """

    __slots__ = ("_value", "tensor")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor: Tensor | None = tensor
        self._value = 0.0

    @property
    def is_here(self) -> bool:
        """True if it is on the host."""
        return self.tensor is None

    def land(self, value: float) -> None:
        """Set the arrived ``value``."""
        self._value = value
        self.tensor = None

    def __float__(self) -> float:
        tensor = self.tensor
        return self._value if tensor is None else float(tensor)


class Flight:
    """One copy of the numbers that waited on some devices.

    Parameters
    ----------
    numbers : list of OnDevice
    """

    def __init__(self, numbers: list[OnDevice]) -> None:
        by_device: dict[torch.device, list[tuple[OnDevice, Tensor]]] = {}
        for number in numbers:
            if number.tensor is not None:
                by_device.setdefault(number.tensor.device, []).append((number, number.tensor))
        self._parts = [
            ([number for number, _ in pairs], HostBatch([tensor for _, tensor in pairs]))
            for pairs in by_device.values()
        ]

    def land(self) -> None:
        """Wait for all numbers; calling it twice is fine."""
        parts = self._parts
        for numbers, copied in parts:
            for number, value in zip(numbers, copied.values(), strict=True):
                number.land(value)
        self._parts = []


class Transfer:
    """Copy numbers to the host when there are many, or on request."""

    def __init__(self) -> None:
        self._waiting: list[OnDevice] = []
        self.under_way: list[Flight] = []

    def take(self, tensor: Tensor) -> OnDevice:
        """Leave a number on its device for now."""
        number = OnDevice(tensor)
        self._waiting.append(number)
        return number

    @property
    def is_full(self) -> bool:
        """True if it is time to copy."""
        return len(self._waiting) >= BATCH

    def depart(self) -> None:
        """Begin to copy all that waits."""
        if self._waiting:
            self.under_way.append(Flight(self._waiting))
            self._waiting = []

    def land(self, flights: Sequence[Flight]) -> None:
        """Wait for some of those under way, which then no longer are."""
        for flight in flights:
            flight.land()
        self.under_way = [flight for flight in self.under_way if flight not in flights]
