"""Modules that take turns in a run: every value is right, and each module has recent ones."""

from __future__ import annotations

from types import MappingProxyType

import numpy as np
import pytest
from torch import Tensor, nn
from torch.nn import functional as F

import notebook_probe as nbp
from notebook_probe.probes.due.turns import LEAST_MODULES, Turns
from tests.models import floats, made, sgd, train
from tests.run.conftest import Watch

N_LAYERS, FACTOR, N_STEPS = 2 * LEAST_MODULES, 8, 40
NAMES = ("output_std", "grad_norm", "weight_norm", "update_ratio", "output_grad_norm")
batch = floats(5, 4)


class Bent(nn.Sequential):
    """Linear layers with a bend between them: a finding would have steps measured whole."""

    def forward(self, x: Tensor) -> Tensor:
        for layer in self:
            x = F.leaky_relu(layer(x), 0.9)
        return x


def deep() -> nn.Module:
    layers = [nn.Linear(4, 4) for _ in range(N_LAYERS)]
    for layer in layers:
        nn.init.orthogonal_(layer.weight)  # as else the outputs of so many would be constant
    return Bent(*layers)


def trained(watch: Watch, factors: dict[str, int]) -> nbp.Run:
    """A run whose default probes are stretched from the first step on."""
    model = made(deep)
    run = watch(model, budget=None)
    run._parts.observer.training._budget.factors = MappingProxyType(factors)
    train(model, sgd(model), batch, range(N_STEPS))
    run.controls.settle()
    return run


@pytest.fixture
def in_turns(watch: Watch) -> nbp.Run:
    return trained(watch, {**dict.fromkeys(NAMES, FACTOR), "grad_norm": 2, "weight_norm": 4})


def test_what_is_measured_in_turns_is_what_would_be_measured_at_every_step(
    in_turns: nbp.Run, watch: Watch
) -> None:
    whole = trained(watch, {})
    for name in NAMES:
        found, wanted = in_turns.data[name], whole.data[name]
        known = np.asarray(found.notnull())
        assert known.any()
        np.testing.assert_array_equal(np.asarray(found)[known], np.asarray(wanted)[known])


def test_each_module_is_measured_in_its_turn_and_has_a_recent_value(in_turns: nbp.Run) -> None:
    turns = Turns({str(i) for i in range(N_LAYERS)})
    for name, factor in (("output_std", FACTOR), ("grad_norm", 2), ("weight_norm", 4)):
        for module in range(N_LAYERS):
            steps = in_turns.series(str(module), name).step.values
            turn = turns.turn(str(module), factor)
            assert steps.tolist() == [*range(turn, N_STEPS, factor)], (name, module)


def test_what_is_measured_of_a_module_at_one_step_can_be_compared(in_turns: nbp.Run) -> None:
    """Where the rarest quantity has a value all others of the module have one."""
    known = {name: np.asarray(in_turns.data[name].notnull()) for name in NAMES}
    for name in NAMES:
        assert not (known["update_ratio"] & ~known[name]).any(), name


def test_a_step_reads_only_the_modules_whose_turn_it_is(in_turns: nbp.Run) -> None:
    per_step = np.asarray(in_turns.data["output_std"].notnull().sum("module"))
    per_step = per_step[per_step > 0]
    assert per_step.max() <= N_LAYERS / 2, "of two turns"
    assert per_step.sum() == N_LAYERS * N_STEPS / FACTOR


def test_a_module_that_waits_for_its_turn_is_not_silent(in_turns: nbp.Run) -> None:
    assert {probe.note for probe in in_turns.status().probes} == {""}
    assert len(in_turns.alerts) == 0
