"""Layers that autocast does not reach, found in one training call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from notebook_probe.probes.step.containers import tensors_of

__all__ = ["CastFollower", "autocast_types"]

KINDS = ("cpu", "cuda", "xpu", "mps")
"""Types of devices for which autocast is looked for."""
LOOKUPS = (nn.Embedding, nn.EmbeddingBag, nn.Bilinear, nn.LayerNorm, nn.RNNBase, nn.RNNCellBase)
"""Layers that keep the type of their weights under autocast, or convert it inside."""


class CastFollower:
    """Output types of the layers with a matrix, in one call under autocast.

    Parameters
    ----------
    modules : mapping of str to nn.Module
        By path.
    dtype : torch.dtype
        Type that autocast gives.

    Attributes
    ----------
    found : dict of str to torch.dtype
        Type of each layer that returned another one, by path.
    """

    def __init__(self, modules: Mapping[str, nn.Module], dtype: torch.dtype) -> None:
        self._dtype = dtype
        self.found: dict[str, torch.dtype] = {}
        self._handles: list[RemovableHandle] = [
            module.register_forward_hook(_Noting(self, path))
            for path, module in modules.items()
            if _has_matrix(module)
        ]

    def returned(self, path: str, args: Any, output: Any) -> None:
        """Note the output of a layer."""
        given, made = tensors_of(args), tensors_of(output)
        is_of_numbers = bool(given and made) and given[0].is_floating_point()
        if is_of_numbers and made[0].dtype in {torch.float32, torch.float64} - {self._dtype}:
            self.found[path] = made[0].dtype

    def remove(self) -> None:
        """Take all hooks off."""
        handles, self._handles = self._handles, []
        for handle in handles:
            handle.remove()


class _Noting:
    """Hook that notes the type of one layer's output."""

    def __init__(self, follower: CastFollower, path: str) -> None:
        self._follower, self._path = follower, path

    def __call__(self, module: nn.Module, args: Any, output: Any) -> None:
        self._follower.returned(self._path, args, output)


def autocast_types() -> dict[str, torch.dtype]:
    """Return the type that autocast gives now, by the type of device for which it is on."""
    return {
        kind: torch.get_autocast_dtype(kind) for kind in KINDS if torch.is_autocast_enabled(kind)
    }


def _has_matrix(module: nn.Module) -> bool:
    """Return whether a layer multiplies by its own matrix, as far as names say."""
    weight = module._parameters.get("weight")
    return (
        isinstance(weight, Tensor)
        and weight.ndim > 1
        and not module._modules
        and not isinstance(module, LOOKUPS)
    )
