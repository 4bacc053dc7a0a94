"""Layers of every kind in training, what an unwatched twin of each saw, and what was recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.model.map import ModelMap
from notebook_probe.quantities import as_quantity
from notebook_probe.run.attach.request import misfit

Array: TypeAlias = npt.NDArray[np.float64]

STEPS = 3


@dataclass(frozen=True)
class Layer:
    """One layer: how it is made, what comes in, and where the channels of its tensors are."""

    make: Callable[[], nn.Module]
    shape: tuple[int, ...]
    axis: int = -1
    n_times: int = 1
    """How often its input is handed over."""
    words: int = 0
    """The input is that many whole numbers."""

    def input(self, step: int) -> Tensor:
        generator = torch.Generator().manual_seed(step)
        """Batch number ``step``; what it is a leaf of keeps its gradient."""
        if self.words:
            return torch.randint(self.words, self.shape, generator=generator)
        scale = torch.arange(1.0, self.shape[self.axis] + 1).div(4)
        x = torch.randn(self.shape, generator=generator).movedim(self.axis, -1) * scale + 0.3
        return x.movedim(-1, self.axis).contiguous().requires_grad_()


LAYERS: dict[str, Layer] = {
    "linear": Layer(lambda: nn.Linear(12, 5), (30, 12)),
    "linear on sequences": Layer(lambda: nn.Linear(6, 3), (4, 5, 6)),
    "conv1d": Layer(lambda: nn.Conv1d(4, 5, 3), (6, 4, 7), 1),
    "conv2d": Layer(lambda: nn.Conv2d(3, 5, 3), (4, 3, 5, 5), 1),
    "conv3d": Layer(lambda: nn.Conv3d(2, 3, 2), (3, 2, 3, 3, 3), 1),
    "batchnorm1d": Layer(lambda: nn.BatchNorm1d(4), (9, 4), 1),
    "batchnorm2d": Layer(lambda: nn.BatchNorm2d(3), (4, 3, 3, 2), 1),
    "embedding": Layer(lambda: nn.Embedding(11, 6), (5, 4), words=11),
    "lstm": Layer(lambda: nn.LSTM(6, 4, batch_first=True), (4, 5, 6)),
    "attention": Layer(lambda: nn.MultiheadAttention(6, 2, batch_first=True), (4, 5, 6), n_times=3),
    "relu": Layer(nn.ReLU, (20, 6), 1),
    "tanh": Layer(nn.Tanh, (20, 6), 1),
}


class Zoo(nn.Module):
    """All layers side by side, each with a loss of its own first output."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.ModuleDict({name: layer.make() for name, layer in LAYERS.items()})

    def forward(self, inputs: dict[str, Tensor]) -> Tensor:
        return torch.stack([self.of(name, inputs[name]) for name in LAYERS]).sum()

    def of(self, name: str, x: Tensor) -> Tensor:
        y = self.layers[name](*[x] * LAYERS[name].n_times)
        first: Tensor = y[0] if isinstance(y, tuple) else y
        weights = torch.linspace(-1, 2, first.numel()).view_as(first)
        return (first * weights).sum() + first.square().sum()


@dataclass
class Seen:
    """What one layer saw in one step, in float64; of several tensors the first."""

    x: Array
    y: Array
    every_y: Array
    axis: int
    gy: Array
    gx: Array | None
    w: list[Array] = field(default_factory=list)
    """Its weights as the forward used them: those that count for a module."""
    dw: list[Array] = field(default_factory=list)
    """What the optimizer's step did to them."""
    gw: list[Array] = field(default_factory=list)
    """Their gradients."""
    g: list[Array] = field(default_factory=list)
    """The gradients of everything below."""
    d: list[Array] = field(default_factory=list)
    """What the step did to everything below."""
    running: tuple[Array, Array] | None = None
    """Mean and variance that run along."""
    bounded: bool = False
    """It is an activation between -1 and 1."""
    reads_words: bool = False
    """What comes in are indices, which have no channels."""

    def rows(self, of: Array) -> Array:
        """Samples and positions by channels."""
        return np.moveaxis(of, self.axis, -1).reshape(-1, of.shape[self.axis])


def wide(tensor: Any) -> Array:
    return np.array(tensor.detach().double().numpy())


def flat(arrays: Iterable[Array]) -> Array:
    return np.concatenate([array.ravel() for array in arrays])


def weights_of(layer: nn.Module) -> list[nn.Parameter]:
    own = dict(layer.named_parameters(recurse=False))
    return [own["weight"]] if "weight" in own else [*own.values()]


@cache
def histories() -> dict[str, list[Seen]]:
    """What the layers of a twin saw, step by step, without a probe."""
    zoo = Zoo()
    found: dict[str, list[Seen]] = {name: [] for name in LAYERS}
    kept: dict[str, dict[str, Any]] = {}

    def look(name: str, module: nn.Module, args: Any, output: Any) -> None:
        outputs = output if isinstance(output, tuple) else (output,)
        nested = [one if isinstance(one, tuple) else (one,) for one in outputs]
        every = [tensor for one in nested for tensor in one if tensor is not None]
        every[0].retain_grad()
        before = {each: wide(each) for each in module.parameters()}
        kept[name] = {"x": args[0], "every": every, "before": before}

    for name, module in zoo.layers.items():
        module.register_forward_hook(partial(look, name))

    def end() -> None:
        for name, module in zoo.layers.items():
            found[name].append(seen(module, name, kept[name]))

    train(zoo, end)
    return found


def seen(module: Any, name: str, kept: dict[str, Any]) -> Seen:
    """One step of a layer, of what its call has left."""
    x, every, before = kept["x"], kept["every"], kept["before"]
    weights, running = weights_of(module), getattr(module, "running_mean", None)
    return Seen(
        x=wide(x),
        y=wide(every[0]),
        every_y=flat(map(wide, every)),
        axis=LAYERS[name].axis,
        gy=wide(every[0].grad),
        gx=None if x.grad is None else wide(x.grad),
        w=[before[weight] for weight in weights],
        dw=[wide(weight) - before[weight] for weight in weights],
        gw=[wide(weight.grad) for weight in weights],
        g=[wide(each.grad) for each in before],
        d=[wide(each) - then for each, then in before.items()],
        running=None if running is None else (wide(running), wide(module.running_var)),
        bounded=isinstance(module, nn.Tanh),
        reads_words=bool(LAYERS[name].words),
    )


def train(zoo: Zoo, end: Callable[[], None] = lambda: None) -> None:
    optimizer = torch.optim.Adam(zoo.parameters(), lr=0.05)
    for step in range(STEPS):
        inputs = {name: layer.input(step) for name, layer in LAYERS.items()}
        optimizer.zero_grad()
        zoo(inputs).backward()
        optimizer.step()
        end()


def recorded(quantities: Iterable[str], store: Path) -> dict[str, dict[str, Any]]:
    """The last value of each quantity at each layer that it fits; None where there is none."""
    zoo, wanted = Zoo(), [as_quantity(name) for name in quantities]
    paths, model_map = [f"layers.{name}" for name in LAYERS], ModelMap(zoo)
    fitting = {path: [q for q in wanted if not misfit(model_map, path, q)] for path in paths}
    with nbp.watch(zoo, store=store, probes=fitting) as run:
        train(zoo)
        run.controls.settle()
        errors = [(probe.quantity, probe.error) for probe in run.status().probes if probe.n_errors]
        assert not errors, errors
    data = run.data.load()
    return {
        name: {q.name: whole(data, q.name, f"layers.{name}") for q in fitting[f"layers.{name}"]}
        for name in LAYERS
    }


def whole(data: Any, quantity: str, path: str) -> Any:
    """A layer's value with the width of its bins, which is read as a series of its own."""
    value, width = last(data[quantity], path), f"{quantity}_width"
    if value is None or width not in data:
        return value
    return np.append(value, last(data[width], path))


def last(series: Any, path: str) -> Any:
    """A layer's value in the last step, None where there is none."""
    if STEPS - 1 not in series.step:
        return None
    now = series.sel(step=STEPS - 1)
    if "module" in now.dims:
        return now.sel(module=path).values
    vector = now.values[now.module_of_element.values == path]
    vector = vector[~np.isnan(vector)]  # elements of other quantities
    return vector if len(vector) else None
