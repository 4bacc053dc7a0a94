"""Quantities by hand, in float64, of what an unwatched training step showed to its modules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn

from benchmarks.workloads import Workload

__all__ = ["ORACLES", "SCALES", "Seen", "see"]

Array: TypeAlias = npt.NDArray[np.float64]


def _empty() -> Array:
    return np.empty(0)


@dataclass
class Seen:
    """What one module saw in a step."""

    input: Array = field(default_factory=_empty)
    grad_output: Array = field(default_factory=_empty)
    weight: Array = field(default_factory=_empty)
    grads: Array = field(default_factory=_empty)
    """Of all its parameters, flat."""


def see(workload: Workload) -> dict[str, Seen]:
    """Train one step; returns what every module saw in it."""
    seen = {path: Seen() for path, _ in workload.model.named_modules()}
    for path, module in workload.model.named_modules():
        module.register_forward_hook(_Keep(seen[path]))

    def keep_parameters() -> None:
        for path, module in workload.model.named_modules():
            own = dict(module.named_parameters(recurse=False))
            grads = [_wide(p.grad).ravel() for p in own.values() if p.grad is not None]
            seen[path].grads = np.concatenate([_empty(), *grads])
            if "weight" in own:
                seen[path].weight = _wide(own["weight"])

    workload.step(keep_parameters)
    return seen


class _Keep:
    """Keeps copies of a module's input and of the gradient that reaches its output."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen

    def __call__(self, module: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> None:
        self._seen.input = _wide(args[0])
        output.register_hook(self._backward)

    def _backward(self, grad: Tensor) -> None:
        self._seen.grad_output = _wide(grad)


def _wide(tensor: Tensor) -> Array:
    return tensor.detach().double().numpy().copy()


def _norm(array: Array) -> float:
    return float(np.sqrt(np.square(array).sum()))


def _histogram(array: Array) -> Array:
    """64 equal bins up to the power of two above all, and how many are not finite."""
    finite = array[np.isfinite(array)]
    width = 2.0 ** (int(np.frexp(np.abs(finite).max(initial=2.0**-126))[1]) - 5)
    found, _ = np.histogram(finite, width * np.arange(-32, 33))
    return np.array([*found, array.size - finite.size], np.float64)


def _eigenvalues(inputs: Array) -> Array:
    """Descending, of the covariance between channels: the last axis, or the second of images."""
    channels = np.moveaxis(inputs, 1 if inputs.ndim == 4 else -1, 0)
    rows = channels.reshape(len(channels), -1)
    eigenvalues = np.linalg.eigvalsh(np.cov(rows))[::-1].astype(np.float64)
    eigenvalues[rows.shape[1] - 1 :] = 0  # exactly, with no more samples than channels
    return eigenvalues


def _stable_rank(eigenvalues: Array) -> float:
    return float(eigenvalues.sum() / eigenvalues[0])


def _condition(eigenvalues: Array) -> float:
    """NaN where the smallest is rounding and nothing else, as behind a LayerNorm."""
    largest, smallest = eigenvalues[0], eigenvalues[-1]
    if smallest == 0:
        return np.inf
    return float(largest / smallest) if smallest > 1e-6 * largest else np.nan


ORACLES: dict[str, Callable[[Seen], npt.ArrayLike]] = {
    "weight_norm": lambda seen: _norm(seen.weight),
    "grad_norm": lambda seen: _norm(seen.grads),
    "input_mean": lambda seen: float(seen.input.mean()),
    "input_norm": lambda seen: _norm(seen.input),
    "output_grad_norm": lambda seen: _norm(seen.grad_output),
    "weight_histogram": lambda seen: _histogram(seen.weight),
    "grad_histogram": lambda seen: _histogram(seen.grads),
    "input_cov_max_eig": lambda seen: float(_eigenvalues(seen.input)[0]),
    "input_cov_stable_rank": lambda seen: _stable_rank(_eigenvalues(seen.input)),
    "input_cov_condition": lambda seen: _condition(_eigenvalues(seen.input)),
}

SCALES: dict[str, Callable[[Seen], float]] = {
    "input_mean": lambda seen: _norm(seen.input) / np.sqrt(seen.input.size),
}
"""What an error is small beside, where the value itself may be zero but for rounding."""
