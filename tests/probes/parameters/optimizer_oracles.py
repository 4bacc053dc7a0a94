"""What a training loop itself sees of its weights, gradients and updates, kept in float64.

A loop is written once and trained twice: alone, where its diary is kept by plain torch hooks and
copies, and watched. What the run recorded must be what the diary says, step by step.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

import notebook_probe as nbp
from tests.models import loss_of, made
from tests.probes.parity import differing, everything
from tests.run.oracle import Numbers, norm, numbers, tensors_in

__all__ = [
    "MODULE",
    "PARAMETER",
    "Diary",
    "Loop",
    "check",
    "play",
    "probes_everywhere",
    "steps_of",
]

PARAMETER = ["weight_norm", "grad_norm", "update_ratio"]
"""Measured at every parameter, under its own path."""

MODULE = ["input_norm", "output_norm", "output_grad_norm"]
"""Measured at every module that has no module in it."""


@dataclass
class Entry:
    """One update: a step of the record."""

    before: dict[str, Numbers]
    after: dict[str, Numbers]
    gradients: dict[str, Numbers]
    owned: set[str]
    calls: dict[str, dict[str, list[Numbers]]] = field(default_factory=dict)
    """Module -> input_norm, output_norm, output_grad_norm -> what came in its calls."""


class Diary:
    """Kept by the loop: every optimizer step goes inside ``with diary.update(optimizer):``.

    Parameters
    ----------
    model : nn.Module
    alone : bool
        Nobody watches this one: keep, by hooks, what modules take and give as well.
    """

    def __init__(self, model: nn.Module, alone: bool) -> None:
        self.entries: list[Entry] = []
        self._model = model
        self._calls: dict[str, dict[str, list[Numbers]]] = defaultdict(lambda: defaultdict(list))
        self._gradients: dict[str, Numbers] = {}
        self.alone = alone
        for path, module in model.named_modules():
            self.hook(path, module)

    def hook(self, path: str, module: nn.Module) -> None:
        """Keep a module's tensors: what it is given, what it returns, the gradient of that.

        To be called for modules that come later; where modules are not kept it does nothing.
        """
        if not self.alone:
            return

        def keep(name: str, value: Any) -> None:
            self._calls[path][name].append(numbers(tensors_in(value)))

        def before(module: nn.Module, given: tuple[Any, ...]) -> None:
            if torch.is_grad_enabled() and self._model.training:
                keep("input_norm", given)

        def after(module: nn.Module, given: tuple[Any, ...], output: Any) -> None:
            if torch.is_grad_enabled() and self._model.training:
                keep("output_norm", output)
                for tensor in (t for t in tensors_in(output) if t.requires_grad):
                    tensor.register_hook(lambda gradient: keep("output_grad_norm", gradient))

        module.register_forward_pre_hook(before)
        module.register_forward_hook(after)

    @contextmanager
    def update(self, *optimizers: Optimizer) -> Iterator[None]:
        """One step of the record; ``optimizers`` are those that take part in it."""
        before = self._weights()
        self.gradients()
        yield
        owned = {id(v) for o in optimizers for group in o.param_groups for v in group["params"]}
        names = {name for name, value in self._parameters() if id(value) in owned}
        calls, self._calls = dict(self._calls), defaultdict(lambda: defaultdict(list))
        self.entries.append(Entry(before, self._weights(), self._gradients, names, calls))

    def forget(self) -> None:
        """Count nothing of what was called since the last update: it has raised."""
        self._calls = defaultdict(lambda: defaultdict(list))

    def gradients(self) -> None:
        """Read the gradients as they are now; again where a closure makes them."""
        self._gradients = {
            name: numbers([value.grad.to_dense()])
            for name, value in self._parameters()
            if value.grad is not None
        }

    def forget_calls(self) -> None:
        """What modules were given and returned so far is no part of the next update."""
        self._calls.clear()

    def _weights(self) -> dict[str, Numbers]:
        return {name: numbers([value]) for name, value in self._parameters()}

    def _parameters(self) -> list[tuple[str, nn.Parameter]]:
        return list(self._model.named_parameters())

    def expected(self) -> dict[tuple[str, str], dict[int, float]]:
        """(place, quantity) -> step -> value."""
        found: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
        for step, entry in enumerate(self.entries):
            for name, weight in entry.before.items():
                found[name, "weight_norm"][step] = norm(weight)
                if name in entry.owned and name in entry.gradients:
                    found[name, "grad_norm"][step] = norm(entry.gradients[name])
                if name in entry.owned:
                    change = norm(entry.after[name] - weight)
                    if norm(weight):  # no step has a size relative to a weight of zero
                        found[name, "update_ratio"][step] = change / norm(weight)
            for place, kept in entry.calls.items():
                for quantity, parts in kept.items():
                    found[place, quantity][step] = norm(np.concatenate(parts))
                found[place, "calls"][step] = len(kept["output_norm"])
        return found


Loop: TypeAlias = Callable[[nn.Module, Diary], Sequence[Optimizer]]
"""Trains a model, keeps the diary, returns its optimizers."""


def steps_of(
    made_by: Callable[[nn.Module], Optimizer], batch: Callable[[int], Tensor], n: int = 3
) -> Loop:
    """Some plain steps of one optimizer."""

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = made_by(model)
        for step in range(n):
            optimizer.zero_grad()
            loss_of(model(batch(step))).backward()
            with diary.update(optimizer):
                optimizer.step()
        return [optimizer]

    return loop


def probes_everywhere(model: nn.Module) -> dict[str, list[str]]:
    """Everything a `Diary` knows, at every parameter and every module without modules in it.

    But for those that compute a weight: whoever looks at the weight calls them.
    """
    never_called = nn.ParameterList | nn.ParameterDict
    leaves = [
        path
        for path, module in model.named_modules()
        if path and not module._modules and not isinstance(module, never_called)
        if "parametrizations" not in path
    ]
    parameters = [name for name, _ in model.named_parameters()]
    return {**dict.fromkeys(leaves, MODULE), **dict.fromkeys(parameters, PARAMETER)}


def play(
    build: Callable[[], nn.Module], loop: Loop, begin: Callable[..., nbp.Run]
) -> tuple[nbp.Run, Diary]:
    """Train alone and watched, see that both leave the same bits; the run and the diary alone."""
    alone, watched = made(build), made(build)
    diary = Diary(alone, alone=True)
    left = _left_by(loop, alone, diary)
    run = begin(watched, probes=probes_everywhere(watched))
    again = _left_by(loop, watched, Diary(watched, alone=False))
    assert differing(left, again) == []
    return run, diary


def _left_by(loop: Loop, model: nn.Module, diary: Diary) -> dict[str, bytes]:
    torch.manual_seed(7)
    return everything(model, loop(model, diary))


def check(run: nbp.Run, diary: Diary) -> None:
    """Every value that the diary tells is recorded at its step, and no other is."""
    data, expected = run.data.load(), diary.expected()
    steps = data.step.values.tolist()
    assert steps == list(range(len(diary.entries)))
    for probe in run.probes():
        wanted = expected.get((probe.module, probe.quantity), {})
        cells = [wanted.get(step, np.nan) for step in steps]
        found = data[probe.quantity].sel(module=probe.module)
        np.testing.assert_allclose(
            found, cells, rtol=1e-5, atol=1e-9, err_msg=f"{probe.quantity} at {probe.module}"
        )
    for place in {probe.module for probe in run.probes() if probe.quantity in MODULE}:
        wanted = expected.get((place, "calls"), {})
        cells = [wanted.get(step, np.nan) for step in steps]
        np.testing.assert_array_equal(data.calls.sel(module=place), cells, err_msg=place)
    measured = {(probe.module, probe.quantity) for probe in run.probes()}
    assert any(expected[key] for key in measured), "the oracle has something to say"
