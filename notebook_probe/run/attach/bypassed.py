"""Modules whose weights torch reads and which it never calls."""

from __future__ import annotations

from torch import nn

from notebook_probe.model.map import ModelMap
from notebook_probe.model.unwrapped import unwrapped
from notebook_probe.quantities import Quantity
from notebook_probe.quantities.reduce.features import CALL

__all__ = ["is_bypassed", "is_never_fed"]


def is_bypassed(model_map: ModelMap, path: str) -> bool:
    """Return whether torch reads a module's weight without calling the module.

    It is attached anyway when requested by name: the code of a subclass may call it.
    """
    above, _, name = path.rpartition(".")
    owner = unwrapped(model_map.by_every_path.get(above))
    own_forward = nn.MultiheadAttention.forward
    # A subclass with another forward may call its out_proj.
    return name == "out_proj" and getattr(type(owner), "forward", None) is own_forward


def is_never_fed(model_map: ModelMap, path: str, quantity: Quantity) -> bool:
    """Return whether a quantity there would wait in vain for a call."""
    reads_calls = any(f.tensor in CALL or f.tensor == "probe_output" for f in quantity.features)
    return reads_calls and is_bypassed(model_map, path)
