"""An optimizer's state, read after its step: whatever it keeps, from the step that has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adafactor, Adam, AdamW, Optimizer, RMSprop

import notebook_probe as nbp
from notebook_probe.quantities.reduce.stat import Number, root
from tests.models import floats, loss_of, made, mlp
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch
from tests.run.oracle import norm, numbers

batch = floats(5, 4)
STEPS = 5


class Late(SGD):
    """Keeps the first weight it remembers, from its third step on."""

    n_steps = 0

    def step(self, closure: Any = None) -> Any:
        loss = super().step(closure)
        self.n_steps += 1
        if self.n_steps == 3:
            for group in self.param_groups:
                for value in group["params"]:
                    self.state[value]["late"] = value.detach().clone()
        return loss


def size_of(key: str) -> Callable[..., Number]:
    """A quantity of the summary of a state tensor, named after it."""
    space: dict[str, Any] = {"root": root}
    exec(f"def size(state_{key}_sumsq): return root(state_{key}_sumsq.sumsq)", space)
    return space["size"]


def total_of(key: str) -> Callable[..., Tensor]:
    """A quantity of the state tensor itself."""
    space: dict[str, Any] = {}
    exec(f"def total(state_{key}): return state_{key}.double().abs().sum()", space)
    return space["total"]


CHOICES: list[tuple[Callable[[nn.Module], Optimizer], str]] = [
    (lambda model: Adam(model.parameters(), lr=0.01), "exp_avg"),
    (lambda model: Adam(model.parameters(), lr=0.01), "step"),
    (lambda model: AdamW(model.parameters(), lr=0.01, foreach=True), "exp_avg_sq"),
    (lambda model: AdamW(model.parameters(), lr=0.01, fused=True), "exp_avg_sq"),
    (lambda model: SGD(model.parameters(), lr=0.1, momentum=0.9), "momentum_buffer"),
    (lambda model: SGD(model.parameters(), lr=0.1), "momentum_buffer"),
    (lambda model: RMSprop(model.parameters(), lr=0.01), "square_avg"),
    (lambda model: Adafactor(model.parameters(), lr=0.01), "row_var"),
    (lambda model: Late(model.parameters(), lr=0.1), "late"),
    (lambda model: Adam(model.parameters(), lr=0.01), "no_such_thing"),
]


def trained(
    model: nn.Module, make: Callable[[nn.Module], Optimizer], key: str
) -> tuple[dict[str, dict[int, Any]], dict[str, bytes]]:
    """Parameter -> step -> state in float64, where there is one; and what is left."""
    optimizer = make(model)
    found: dict[str, dict[int, Any]] = {}
    for step in range(STEPS):
        optimizer.zero_grad()
        loss_of(model(batch(step))).backward()
        optimizer.step()
        for name, value in model.named_parameters():
            state = optimizer.state[value].get(key) if value in optimizer.state else None
            if isinstance(state, Tensor):
                found.setdefault(name, {})[step] = numbers([state])
    return found, everything(model, [optimizer])


@pytest.mark.parametrize(
    ("make", "key"), CHOICES, ids=[f"{i}-{key}" for i, (_, key) in enumerate(CHOICES)]
)
def test_state_is_read_after_the_step_and_is_a_gap_where_there_is_none(
    make: Callable[[nn.Module], Optimizer], key: str, watch: Watch
) -> None:
    alone, watched = made(mlp), made(mlp)
    size, total = size_of(key), total_of(key)
    names = [name for name, _ in watched.named_parameters()]
    run = watch(watched, probes={name: [size, total, "weight_norm"] for name in names})
    expected, left = trained(alone, make, key)
    _, again = trained(watched, make, key)
    assert differing(left, again) == []
    assert not run.status().errors
    data = run.data.load()
    for name in names:
        wanted = expected.get(name, {})
        for quantity, reduce in (("size", norm), ("total", lambda x: float(np.abs(x).sum()))):
            cells = [reduce(wanted[s]) if s in wanted else np.nan for s in range(STEPS)]
            np.testing.assert_allclose(
                data[quantity].sel(module=name), cells, rtol=1e-5, err_msg=f"{quantity} of {name}"
            )


def test_a_state_that_appears_late_is_recorded_from_its_first_step(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes={"0.weight": [total_of("late")]})
    trained(model, lambda model: Late(model.parameters(), lr=0.1), "late")
    assert run.series("0.weight", "total").step.values.tolist() == [2, 3, 4]


def test_momentum_of_a_layer_is_that_of_its_weight(watch: Watch) -> None:
    def momentum(state_momentum_buffer: Tensor) -> Tensor:
        return state_momentum_buffer.norm()

    model = made(mlp)
    run = watch(model, probes={"0": [momentum], "0.weight": [momentum]})
    trained(model, lambda model: SGD(model.parameters(), lr=0.1, momentum=0.9), "momentum_buffer")
    both = run.data.momentum.sel(module=["0", "0.weight"]).load()
    assert np.isfinite(both).all()
    np.testing.assert_array_equal(both[0], both[1])


def test_the_gradient_against_its_running_mean_is_one_quantity(watch: Watch) -> None:
    """State and update exist at the same moment, so one function may take both."""

    def agreement(state_exp_avg: Tensor, update: Tensor) -> Tensor:
        return torch.nn.functional.cosine_similarity(-state_exp_avg.ravel(), update.ravel(), dim=0)

    model = made(mlp)
    run = watch(model, probes={"0.weight": [agreement]})
    loss_of(model(batch(0))).backward()
    SGD(model.parameters(), lr=0.1).step()
    assert not run.status().errors
    optimizer = Adam(model.parameters(), lr=0.01)
    weight = model.get_parameter("0.weight")
    before = numbers([weight])
    loss_of(model(batch(1))).backward()
    optimizer.step()
    change, average = numbers([weight]) - before, numbers([optimizer.state[weight]["exp_avg"]])
    wanted = float(-average @ change / norm(average) / norm(change))
    assert run.series("0.weight", "agreement").step.values.tolist() == [1]
    assert float(run.series("0.weight", "agreement")[0]) == pytest.approx(wanted, rel=1e-4)


def test_a_state_is_a_feature_that_can_be_named_before_it_exists() -> None:
    @nbp.quantity(name="test_state_named")
    def named(state_anything_at_all: Tensor) -> float:
        """Any key of any optimizer."""
        return 1.0

    assert named.needs == ("state.anything_at_all",)
