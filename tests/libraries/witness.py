"""What a model does that no run watches, step by step, by hooks of torch's own and in float64."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence
from torch.optim import Optimizer
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from torch.utils.hooks import RemovableHandle

from tests.libraries.observed import Call, Step, combined, versions
from tests.run.oracle import Numbers, numbers

__all__ = ["Witness"]


class _Hook:
    """Calls a function; in a copy or a pickle of the model it does nothing."""

    def __init__(self, function: Callable[..., None]) -> None:
        self._function = function

    def __call__(self, *call: Any) -> None:
        self._function(*call)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Hook, (_nothing,)


def _nothing(*call: Any) -> None:
    pass


class Witness:
    """Keeps what every call of a training forward took and gave, and what every update changed.

    ``with Witness(model) as witness:`` train; `steps` has one entry per optimizer step.

    Parameters
    ----------
    model : nn.Module
        Its own forward is called in every batch.
    retained : bool
        The loop keeps its graphs until the optimizer steps: what modules send to their inputs can
        be worked out too.

    Attributes
    ----------
    steps : list of Step
    validations : dict
        Number of updates done -> size of what the model gave in evaluations at that moment.
    """

    def __init__(self, model: nn.Module, retained: bool = False) -> None:
        self.steps: list[Step] = []
        self._model, self._retained = model, retained
        self._now = Step()
        self._inside = False  # a checkpoint computes modules again outside of the root's forward
        self._taken: dict[str, dict[Tensor, int]] = {}
        self._validated: dict[int, list[Numbers]] = defaultdict(list)
        self._handles: list[RemovableHandle] = []

    @property
    def validations(self) -> dict[int, float]:
        return {step: combined(sizes) for step, sizes in self._validated.items()}

    def __enter__(self) -> Witness:
        self._before = self._weights()
        self._handles.append(self._model.register_forward_pre_hook(_Hook(self._begins)))
        for path, module in self._model.named_modules():
            before, after = partial(self._takes, path), partial(self._gives, path)
            self._handles += [
                module.register_forward_pre_hook(_Hook(before), with_kwargs=True),
                module.register_forward_hook(_Hook(after)),
            ]
        self._handles += [
            self._model.register_forward_hook(_Hook(self._ends), always_call=True),
            register_optimizer_step_pre_hook(self._updates),
            register_optimizer_step_post_hook(self._updated),
        ]
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()

    def _weights(self) -> dict[str, Numbers]:
        return {name: numbers([value]) for name, value in self._model.named_parameters()}

    def _begins(self, model: nn.Module, *_: object) -> None:
        self._inside = model.training and torch.is_grad_enabled()

    def _ends(self, model: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if not self._inside:
            self._validated[len(self.steps)] += [numbers([one]) for one in _distinct(output)]
        self._inside = False

    def _takes(
        self, path: str, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        if self._inside:
            taken = _distinct((args, kwargs))
            self._taken[path] = versions(taken)
            self._now.inputs[path] += [numbers([tensor]) for tensor in _without_indices(taken)]

    def _gives(self, path: str, module: nn.Module, args: tuple[Any, ...], output: Any) -> None:
        if not self._inside:
            return
        given = _distinct(output)
        self._now.outputs[path] += [numbers([tensor]) for tensor in _without_indices(given)]
        self._now.calls.append(call := Call(path, self._taken.pop(path), versions(given)))
        for tensor in call.outputs:
            tensor.retain_grad()

    def _updates(self, *_: object) -> None:
        if self._retained:  # before the update: it changes the weights that a backward needs
            self._now.read_output_gradients()
            self._now.read_input_gradients()

    def _updated(self, optimizer: Optimizer, *_: object) -> None:
        if not self._retained:  # after the closure, if there is one
            self._now.read_output_gradients()
        self._now.end(self._model, self._before, optimizer)
        self.steps.append(self._now)
        self._now, self._before = Step(), self._weights()


def _without_indices(tensors: list[Tensor]) -> list[Tensor]:
    """Leave out positions, masks and indices that come with other numbers; tokens come alone."""
    others = [one for one in tensors if one.dtype.is_floating_point or one.dtype.is_complex]
    return others if others else tensors


def _distinct(value: Any) -> list[Tensor]:
    return list({id(tensor): tensor for tensor in _tensors(value)}.values())


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, PackedSequence):
        yield value.data  # the rest of it are sizes and places, not activations
    elif isinstance(value, Mapping):
        yield from _tensors(list(value.values()))
    elif is_dataclass(value):
        yield from _tensors([getattr(value, field.name) for field in fields(value)])
    elif isinstance(value, tuple | list):
        for part in value:
            yield from _tensors(part)
