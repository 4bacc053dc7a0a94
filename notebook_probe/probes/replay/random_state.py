"""The state of every random generator that a model or a loss may draw from."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

__all__ = ["RandomState"]


@dataclass(frozen=True, eq=False)
class RandomState:
    """torch's on the CPU and on some devices, numpy's and Python's.

    Examples
    --------
    >>> state = RandomState.now()
    >>> first = torch.rand(2)
    >>> state.set()
    >>> torch.equal(torch.rand(2), first)
    True
    """

    cpu: Tensor
    devices: tuple[tuple[torch.device, Tensor], ...]
    numpy: Any
    python: Any

    @classmethod
    def now(cls, devices: Iterable[torch.device] = ()) -> RandomState:
        """Return the present state, with that of these devices."""
        others = [one for one in dict.fromkeys(devices) if one.type not in ("cpu", "meta")]
        return cls(
            torch.get_rng_state(),
            tuple((device, _generator(device).get_rng_state(*_of(device))) for device in others),
            np.random.get_state(),  # noqa: NPY002  what everybody draws from
            random.getstate(),
        )

    def set(self) -> None:
        """Set every generator to this state."""
        torch.set_rng_state(self.cpu)
        for device, state in self.devices:
            _generator(device).set_rng_state(state, *_of(device))
        np.random.set_state(self.numpy)  # noqa: NPY002
        random.setstate(self.python)


def _generator(device: torch.device) -> Any:
    return torch.get_device_module(device)


def _of(device: torch.device) -> tuple[torch.device, ...]:
    """Return the arguments for the functions of a device's module; there is only one mps."""
    return () if device.type == "mps" else (device,)
