"""Name of a device, with that of its card."""

from __future__ import annotations

from functools import cache

import torch

__all__ = ["device_text"]


def device_text(device: torch.device) -> str:
    """Name a device, such as ``"cpu"`` or ``"cuda:0, NVIDIA H100"``.

    Examples
    --------
    >>> device_text(torch.device("cpu"))
    'cpu'
    """
    return ", ".join(filter(None, (str(device), _name(device))))


@cache
def _name(device: torch.device) -> str:
    """Return the driver's name for it; empty for a device without a name."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else ""
