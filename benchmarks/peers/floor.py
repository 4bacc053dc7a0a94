"""The arithmetic alone: our reductions called from the barest hooks, their results thrown away.

No step, no phase, no schedule, no row, nothing made safe: what is above this is what it costs to
do it for any model and any loop, and to keep the values.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from torch import Tensor, nn

from benchmarks.peers.tool import Watched, knows
from benchmarks.probe_sets import Probes
from benchmarks.workloads import Workload
from notebook_probe.quantities import quantities
from notebook_probe.quantities.reduce.reductions import Reduction, measuring

__all__ = ["watch"]

Wanted: TypeAlias = "dict[Reduction, set[str]]"
"""The parts of each reduction that are wanted of one tensor."""


def watch(workload: Workload, probes: Probes, folder: Path) -> Watched:
    knows(probes, list(quantities))
    handles, every = [], dict(_wanted(workload.model, probes))
    for module, tensors in every.items():
        if "input" in tensors:
            handles.append(module.register_forward_pre_hook(_Input(tensors["input"])))
        if "grad_output" in tensors:
            handles.append(module.register_forward_hook(_Output(tensors["grad_output"])))
    weights = _grouped(every, "weight", lambda module: [module.get_parameter("weight")])
    grads = _grouped(every, "grad", lambda module: [*module.parameters()])

    def read(optimizer: Any, args: Any, kwargs: Any) -> None:
        for (reduction, wanted), own in weights.items():
            reduction.measure_all(own, wanted)
        for (reduction, wanted), own in grads.items():
            reduction.measure_all([one.grad for one in own if one.grad is not None], wanted)

    handles.append(workload.optimizer.register_step_pre_hook(read))

    def close() -> None:
        for handle in handles:
            handle.remove()

    return Watched(workload.step, close)


def _wanted(model: nn.Module, probes: Probes) -> Iterator[tuple[nn.Module, dict[str, Wanted]]]:
    """Module -> tensor -> what is wanted of it."""
    for path, module in model.named_modules():
        tensors: dict[str, Wanted] = {}
        for selects, names in probes.items():
            for name in names if selects(path, module) else ():
                for feature in quantities[name].features:
                    of_tensor = tensors.setdefault(feature.tensor, {})
                    of_tensor.setdefault(measuring(feature.part), set()).add(feature.part)
        if tensors:
            yield module, tensors


def _grouped(every: Any, tensor: str, own: Any) -> dict[Any, list[nn.Parameter]]:
    groups: dict[Any, list[nn.Parameter]] = {}
    for module, tensors in every.items():
        for reduction, wanted in tensors.get(tensor, {}).items():
            groups.setdefault((reduction, frozenset(wanted)), []).extend(own(module))
    return groups


class _Reader:
    def __init__(self, wanted: Wanted) -> None:
        self._wanted = [(reduction, frozenset(names)) for reduction, names in wanted.items()]

    def read(self, tensor: Tensor, module: nn.Module) -> None:
        for reduction, wanted in self._wanted:
            reduction.measure(tensor, module, wanted)


class _Input(_Reader):
    def __call__(self, module: nn.Module, args: tuple[Tensor, ...]) -> None:
        self.read(args[0], module)


class _Output(_Reader):
    def __call__(self, module: nn.Module, args: Any, output: Tensor) -> None:
        output.register_hook(lambda grad: self.read(grad, module))
