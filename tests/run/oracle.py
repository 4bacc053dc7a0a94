"""What the quantities must be, in float64 numpy, from tensors of a twin that nobody watches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

import notebook_probe as nbp
from tests.models import loss_of

Numbers = npt.NDArray[np.float64]


def tensors_in(value: Any) -> list[Tensor]:
    if isinstance(value, Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value
    if not isinstance(value, dict | tuple | list):
        return []
    return [tensor for part in parts for tensor in tensors_in(part)]


def float64(tensor: Tensor) -> Numbers:
    """All elements in double precision, flat; complex numbers by their modulus."""
    tensor = tensor.detach()
    if tensor.is_complex():
        tensor = tensor.to(torch.complex128).abs()
    dense = tensor.to_dense() if tensor.layout is not torch.strided else tensor
    return dense.double().numpy().ravel()


def numbers(tensors: Iterable[Tensor]) -> Numbers:
    """All elements of all tensors, one after the other."""
    flat = [float64(tensor) for tensor in tensors]
    return np.concatenate(flat) if flat else np.empty(0)


def norm_of(*tensors: Tensor) -> float:
    """Euclidean norm of everything together."""
    return norm(numbers(tensors))


def steps_of(run: nbp.Run) -> list[int]:
    return run.data.step.values.tolist()


def norm(values: Numbers) -> float:
    return float(np.sqrt(np.square(values).sum()))


class Twin:
    """Trains an unwatched model and keeps the tensors of its last step."""

    def __init__(self, model: nn.Module, optimizer: Optimizer, clip: float | None = None) -> None:
        self.model, self.optimizer, self.clip = model, optimizer, clip
        self.inputs: dict[str, list[Tensor]] = defaultdict(list)
        self.outputs: dict[str, list[Tensor]] = defaultdict(list)
        self.output_grads: dict[str, list[Tensor]] = defaultdict(list)
        self.n_calls: dict[str, int] = defaultdict(int)
        self._calls: list[tuple[str, Tensor]] = []
        for path, module in model.named_modules():
            module.register_forward_pre_hook(self._keep_inputs(path), with_kwargs=True)
            module.register_forward_hook(self._keep_outputs(path))

    def step(self, batches: Sequence[Tensor]) -> None:
        """One update from one or many micro-batches."""
        for kept in (self.inputs, self.outputs, self.output_grads):
            kept.clear()
        self.n_calls.clear()
        self.optimizer.zero_grad()
        for batch in batches:
            self._calls = []
            loss = loss_of(self.model(batch))
            wanted = [tensor for _, tensor in self._calls if tensor.requires_grad]
            places = [path for path, tensor in self._calls if tensor.requires_grad]
            gradients = torch.autograd.grad(loss, wanted, retain_graph=True, allow_unused=True)
            for path, gradient in zip(places, gradients, strict=True):
                if gradient is not None:
                    self.output_grads[path].append(gradient)
            loss.backward()
        if self.clip is not None:
            nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.gradients = {
            name: value.grad.clone()
            for name, value in self.model.named_parameters(remove_duplicate=False)
            if value.grad is not None
        }
        self.before = self._weights()
        self.optimizer.step()
        self.after = self._weights()

    def expected(self) -> dict[str, dict[str, float]]:
        """Quantity -> module -> value, for every quantity that is built in."""
        modules = dict(self.model.named_modules())
        weights = {path: _weight_names(path, module) for path, module in modules.items()}
        below = {path: _names_below(path, module) for path, module in modules.items()}
        of = {
            "input": {path: numbers(kept) for path, kept in self.inputs.items()},
            "output": {path: numbers(kept) for path, kept in self.outputs.items()},
            "output_grad": {path: numbers(kept) for path, kept in self.output_grads.items()},
            "weight": {p: numbers(self.before[n] for n in names) for p, names in weights.items()},
            "update": {
                p: numbers(self.after[n].double() - self.before[n].double() for n in names)
                for p, names in weights.items()
            },
            "grad": {
                p: numbers(self.gradients[n] for n in names if n in self.gradients)
                for p, names in below.items()
            },
        }
        found: dict[str, dict[str, float]] = {}
        for tensor in ("input", "output"):
            found[f"{tensor}_norm"] = _each(norm, of[tensor])
            found[f"{tensor}_mean"] = _each(lambda x: float(x.mean()), of[tensor])
            found[f"{tensor}_std"] = _each(lambda x: float(x.std(ddof=1)), of[tensor])
        found["zero_fraction"] = _each(lambda x: float((x == 0).mean()), of["output"])
        found["nonfinite_fraction"] = _each(lambda x: float((~np.isfinite(x)).mean()), of["output"])
        found["output_grad_norm"] = _each(norm, of["output_grad"])
        found["weight_norm"] = _each(norm, of["weight"])
        found["grad_norm"] = _each(norm, of["grad"])
        found["calls"] = {path: float(n) for path, n in self.n_calls.items()}
        sizes = found["weight_norm"]
        found["update_ratio"] = {
            path: norm(update) / sizes[path]
            for path, update in of["update"].items()
            if update.size and sizes[path]  # no step has a size relative to a weight of zero
        }
        return found

    def _weights(self) -> dict[str, Tensor]:
        named = self.model.named_parameters(remove_duplicate=False)
        return {name: value.detach().clone() for name, value in named}

    def _keep_inputs(self, path: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            distinct = {id(t): t for t in [*tensors_in(args), *tensors_in(kwargs)]}
            self.inputs[path] += [tensor.detach().clone() for tensor in distinct.values()]

        return hook

    def _keep_outputs(self, path: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
            self.n_calls[path] += 1
            for tensor in tensors_in(output):
                self.outputs[path].append(tensor.detach().clone())
                self._calls.append((path, tensor))

        return hook


def _each(reduce: Callable[[Numbers], float], of: dict[str, Numbers]) -> dict[str, float]:
    return {path: reduce(values) for path, values in of.items() if values.size}


def _weight_names(path: str, module: nn.Module) -> list[str]:
    own = [name for name, _ in module.named_parameters(recurse=False)]
    names = ["weight"] if "weight" in own else own
    return [f"{path}.{name}" if path else name for name in names]


def _names_below(path: str, module: nn.Module) -> list[str]:
    return [f"{path}.{name}" if path else name for name, _ in module.named_parameters()]
