"""Modules whose weights torch reads and which it never calls."""

from __future__ import annotations

from torch import nn

from notebook_probe.model.map import ModelMap
from notebook_probe.model.unwrapped import unwrapped
from notebook_probe.quantities import Quantity
from notebook_probe.quantities.reduce.features import CALL

__all__ = ["is_bypassed", "is_never_fed"]


def is_bypassed(model_map: ModelMap, path: str) -> bool:
    """Whether torch reads a module's weight and never calls it.

    Asked for by name it is attached all the same: a subclass's own code may call it.
    """
    above, _, name = path.rpartition(".")
    owner = unwrapped(model_map.by_every_path.get(above))
    own_forward = nn.MultiheadAttention.forward
    return name == "out_proj" and getattr(type(owner), "forward", None) is own_forward


def is_never_fed(model_map: ModelMap, path: str, quantity: Quantity) -> bool:
    """Whether a quantity there would wait in vain for a call."""
    reads_calls = any(f.tensor in CALL or f.tensor == "probe_output" for f in quantity.features)
    return reads_calls and is_bypassed(model_map, path)
