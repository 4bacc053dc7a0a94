"""Do the measured values hold? The last step's, by hand in float64 from an unwatched twin."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn

from benchmarks.peers.ours import begin
from benchmarks.probe_sets import SETS, Probes, places
from benchmarks.workloads import WORKLOADS, Workload

__all__ = ["largest_errors"]

STEPS = 3

Array: TypeAlias = npt.NDArray[np.float64]


@dataclass
class Seen:
    """What one module saw in the last step."""

    input: Array = field(default_factory=lambda: np.empty(0))
    grad_output: Array = field(default_factory=lambda: np.empty(0))
    weight: Array = field(default_factory=lambda: np.empty(0))
    grads: list[Array] = field(default_factory=list)


def _norm(*arrays: Array) -> float:
    return float(np.sqrt(sum(np.square(array).sum() for array in arrays)))


ORACLES: dict[str, Callable[[Seen], float]] = {
    "weight_norm": lambda seen: _norm(seen.weight),
    "grad_norm": lambda seen: _norm(*seen.grads),
    "input_mean": lambda seen: float(seen.input.mean()),
    "input_norm": lambda seen: _norm(seen.input),
    "output_grad_norm": lambda seen: _norm(seen.grad_output),
}


def largest_errors(workload: str, probes: str) -> str:
    """Per quantity, the largest relative error over all its modules, in words."""
    make, chosen = WORKLOADS[workload], SETS[probes]
    model = make().model
    recorded, seen = _recorded(make(), chosen), _seen(make())
    told = []
    for name in (name for names in chosen.values() for name in names if name in ORACLES):
        errors = [
            _relative(recorded(path, name), ORACLES[name](seen[path]))
            for path in places(model, chosen, name)
        ]
        told.append(f"{name} {max(errors):.0e}")
    return ", ".join(told)


def _relative(got: float, want: float) -> float:
    return abs(got - want) / abs(want) if want else abs(got)


def _recorded(workload: Workload, probes: Probes) -> Callable[[str, str], float]:
    """``recorded(module, quantity)`` at the last step."""
    with tempfile.TemporaryDirectory() as folder:
        with begin(workload, probes, Path(folder)) as run:
            for _ in range(STEPS):
                workload.step()
        data = run.data.load()
    return lambda module, quantity: float(data[quantity].sel(module=module, step=STEPS - 1))


def _seen(workload: Workload) -> dict[str, Seen]:
    """What every module sees in the last step of a training that nobody watches."""
    for _ in range(STEPS - 1):
        workload.step()
    seen = {path: Seen() for path, _ in workload.model.named_modules()}
    for path, module in workload.model.named_modules():
        module.register_forward_hook(_Keep(seen[path]))

    def keep_parameters() -> None:
        for path, module in workload.model.named_modules():
            own = dict(module.named_parameters(recurse=False))
            seen[path].grads = [_wide(p.grad) for p in own.values() if p.grad is not None]
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
