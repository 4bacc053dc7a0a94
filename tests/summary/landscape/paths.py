"""Snapshots of paths made by hand, as float64 numpy sees them and as the package does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from notebook_probe.summary.landscape.snapshot import ModelSnapshot

Array: TypeAlias = npt.NDArray[np.float64]

SHAPES = {"fc.weight": (4, 3), "fc.bias": (4,), "head.weight": (2, 4)}
SIZES = [int(np.prod(shape)) for shape in SHAPES.values()]
N = sum(SIZES)


def snapshot(number: int, flat: Array, dtype: torch.dtype = torch.float64) -> ModelSnapshot:
    """With one more parameter that is neither a weight nor a bias, and that moves far."""
    parts = np.split(flat, np.cumsum(SIZES)[:-1])
    values = {
        name: torch.tensor(part.reshape(shape), dtype=dtype)
        for (name, shape), part in zip(SHAPES.items(), parts, strict=True)
    }
    return ModelSnapshot(number, {**values, "token": torch.full((2,), 99.0 * number)}, {})


def walk(seed: int, n: int, scale: float = 1.0) -> list[Array]:
    rng = np.random.default_rng(seed)
    return [*(scale * np.cumsum(rng.normal(size=(n, N)), axis=0))]


def snapshots(points: Sequence[Array], dtype: torch.dtype = torch.float64) -> list[ModelSnapshot]:
    return [snapshot(number, flat, dtype) for number, flat in enumerate(points, 1)]


def flat(direction: Sequence[Tensor]) -> Array:
    return np.concatenate([part.double().numpy().ravel() for part in direction])
