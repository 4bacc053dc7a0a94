"""A loop trains a model and its twin, and says after each update what must have been recorded."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import TypeAlias

import torch
from torch import Tensor, nn

import notebook_probe as nbp
from tests.models import AnyModel
from tests.probes.oracles import column, same_column
from tests.probes.parity import differing, everything

__all__ = ["Loop", "Wanted", "check", "in_double", "outputs_of", "train_beside_a_twin"]

Wanted: TypeAlias = dict[tuple[str, str], float]
"""Module and quantity -> what must have been recorded of an update; NaN is a gap."""

Loop: TypeAlias = Callable[[AnyModel], Iterator[Wanted]]
"""Trains a model by optimizers of its own, and yields after each of their updates."""


def train_beside_a_twin(loop: Loop[AnyModel], alone: AnyModel, watched: AnyModel) -> list[Wanted]:
    """Train both from the same random state: they end equal bit for bit.

    Returns what the twin says that must have been recorded.
    """
    wanted, left = [], []
    for model in (alone, watched):
        torch.manual_seed(7)
        wanted.append(list(loop(model)))
        left.append(everything(model))
    assert differing(*left) == []
    return wanted[0]


def check(run: nbp.Run, wanted: list[Wanted]) -> None:
    """Every number, at every step that there was; and nothing went wrong."""
    assert len(wanted) > 2
    assert run.data.step.values.tolist() == list(range(len(wanted)))
    for module, quantity in wanted[0]:
        expected = [step[module, quantity] for step in wanted]
        if quantity == "calls":
            assert column(run, module, quantity) == expected, module
        else:
            same_column(run, module, quantity, expected, rtol=2e-5)
    status = run.status()
    assert (status.errors, status.problem, status.dropped_rows) == ((), "", 0)


def in_double(model: AnyModel) -> AnyModel:
    """A copy with the weights of this moment, of which no run knows."""
    return copy.deepcopy(model).double()


def outputs_of(module: nn.Module) -> list[Tensor]:
    """What it gives from now on, call by call."""
    found: list[Tensor] = []
    module.register_forward_hook(lambda _module, _given, output: found.append(output))
    return found
