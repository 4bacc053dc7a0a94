"""Quantities of several steps: every step is taken in, a value comes when it is due."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD

import notebook_probe as nbp
from notebook_probe.errors import DuplicateNameError, NotApplicableError, QuantityError
from notebook_probe.quantities.reduce.stat import Stat
from tests.models import floats, made, mlp, sgd, train, train_step
from tests.run.accelerator import Accelerator, moved, on_device
from tests.run.conftest import Watch

batch = floats(5, 4)


class Norms:
    """Sum of the norms of the outputs since the last due step."""

    def reset(self) -> None:
        self.norms: list[float] = []

    def update(self, output_sumsq: Stat) -> None:
        self.norms.append(math.sqrt(output_sumsq.sumsq))

    def compute(self) -> float | None:
        return sum(self.norms) if self.norms else None


class Moved:
    """Distance of the weight from where it was one step before."""

    def __init__(self) -> None:
        self.before: Tensor | None = None
        self.now: Tensor | None = None

    def reset(self) -> None:
        """The weights stay."""

    def update(self, weight: Tensor) -> None:
        self.before, self.now = self.now, weight.clone()

    def compute(self) -> Tensor | None:
        if self.before is None or self.now is None:
            return None
        return (self.now - self.before).norm()


def norms_of(steps: range) -> list[float]:
    """Norms of the first layer's outputs in an unwatched twin."""
    model, found = made(mlp), []
    module = model.get_submodule("0")
    module.register_forward_hook(lambda m, a, y: found.append(float(y.detach().double().norm())))
    train(model, sgd(model), batch, steps)
    return found


@pytest.mark.parametrize(
    ("due", "windows"),
    [
        ("every(1)", [(0, [0]), (1, [1]), (2, [2]), (3, [3]), (4, [4])]),
        ("linear(2,0)", [(0, [0]), (2, [1, 2]), (4, [3, 4])]),
        ("linear(3,1)", [(1, [0, 1]), (4, [2, 3, 4])]),
    ],
)
def test_a_due_step_sums_up_all_steps_since_the_last_one(
    due: str, windows: list[tuple[int, list[int]]], watch: Watch
) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.attach("0", nbp.window_quantity(Norms), due)
    train(model, sgd(model), batch, range(5))
    series, norms = run.series("0", "norms"), norms_of(range(5))
    assert series.step.values.tolist() == [step for step, _ in windows]
    want = [sum(norms[step] for step in steps) for _, steps in windows]
    np.testing.assert_allclose(series.values, want, rtol=1e-6)


def test_several_calls_of_a_step_are_one_sample(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.attach("0", nbp.window_quantity(Norms), "linear(2,1)")
    optimizer = sgd(model)
    for step in range(2):
        optimizer.zero_grad()
        for i in range(3):
            model(batch(3 * step + i)).square().mean().backward()
        optimizer.step()
    twin, squares = made(mlp), []
    twin.get_submodule("0").register_forward_hook(
        lambda m, a, y: squares.append(float(y.detach().double().square().sum()))
    )
    other = sgd(twin)
    for step in range(2):
        other.zero_grad()
        for i in range(3):
            twin(batch(3 * step + i)).square().mean().backward()
        other.step()
    want = math.sqrt(sum(squares[:3])) + math.sqrt(sum(squares[3:]))
    assert float(run.series("0", "norms")[0]) == pytest.approx(want, rel=1e-6)


def test_a_window_sees_the_weight_of_every_step(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.attach("0", nbp.window_quantity(units="1")(Moved), "linear(3,0)")
    optimizer, weights = sgd(model), []
    for step in range(7):
        weights.append(model.get_parameter("0.weight").detach().double().clone())
        train_step(model, optimizer, batch(step))
    series = run.series("0", "moved")
    assert series.step.values.tolist() == [3, 6], "at step 0 there is nothing before"
    want = [float((weights[step] - weights[step - 1]).norm()) for step in (3, 6)]
    np.testing.assert_allclose(series.values, want, rtol=1e-5)


def test_several_parameters_have_a_window_each_and_are_combined(watch: Watch) -> None:
    model = nn.Sequential(nn.LSTM(3, 2))
    run = watch(model, probes=None)
    run.attach("0", nbp.window_quantity(Moved, combine="rss"))
    optimizer = SGD(model.parameters(), lr=0.1)
    before = [value.detach().double().clone() for value in model.parameters()]
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.ones(4, 3))[0].square().mean().backward()
        if _ == 0:
            optimizer.step()
            after = [value.detach().double().clone() for value in model.parameters()]
        else:
            optimizer.step()
    want = math.sqrt(sum(float((a - b).square().sum()) for a, b in zip(after, before, strict=True)))
    series = run.series("0", "moved")
    assert series.step.values.tolist() == [1]
    assert float(series[0]) == pytest.approx(want, rel=1e-5)


def test_a_step_in_which_the_module_was_not_called_adds_nothing(watch: Watch) -> None:
    class Sometimes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one, self.two, self.use = nn.Linear(4, 3), nn.Linear(4, 3), True

        def forward(self, x: Tensor) -> Tensor:
            y: Tensor = self.two(x)
            return y + self.one(x) if self.use else y

    model = made(Sometimes)
    run = watch(model, probes=None)
    run.attach("one", nbp.window_quantity(Norms), "linear(2,1)")
    optimizer, norms = sgd(model), []
    model.one.register_forward_hook(lambda m, a, y: norms.append(float(y.detach().double().norm())))
    for step, use in enumerate([True, False, False, False]):
        model.use = use
        train_step(model, optimizer, batch(step))
    series = run.series("one", "norms")
    assert series.step.values.tolist() == [1], "of steps 2 and 3 there is nothing to tell"
    assert float(series[0]) == pytest.approx(norms[0], rel=1e-6)


def test_a_window_that_fails_costs_itself_and_nobody_else(watch: Watch) -> None:
    class Broken(Norms):
        def update(self, output_sumsq: Stat) -> None:
            raise ValueError("no")

    model = made(mlp)
    run = watch(model, probes={"0": [nbp.window_quantity(Broken), "output_norm"]})
    train(model, sgd(model), batch, range(5))
    run.controls.settle()
    broken, other = run.status().probes
    assert (broken.disabled, broken.n_values, broken.error) == (True, 0, "ValueError: no")
    assert (other.n_values, other.n_errors) == (5, 0)


class Untold(Norms):
    def compute(self) -> float:
        raise ValueError("no value")


class HalfTaken(Norms):
    def update(self, output_sumsq: Stat) -> None:
        super().update(output_sumsq)
        if len(self.norms) == 2:
            raise ValueError("no more")


@pytest.mark.parametrize("samples", ["every", "due"])
def test_a_window_of_which_no_value_can_be_made_is_disabled(samples: Any, watch: Watch) -> None:
    model = made(mlp)
    window = nbp.window_quantity(samples=samples, name=f"test_untold_{samples}")(Untold)
    run = watch(model, probes={"0": [[window, "every(2)"]]})
    train(model, sgd(model), batch, range(9))
    run.controls.settle()
    (probe,) = run.probes()
    assert (probe.disabled, probe.n_values, probe.n_errors) == (True, 0, 3)
    assert probe.note == "disabled after 3 errors in a row"


def test_of_a_step_that_was_not_taken_in_as_a_whole_there_is_no_value(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes={"0": [[nbp.window_quantity(HalfTaken), "linear(2,1)"]]})
    train(model, sgd(model), batch, range(6))
    run.controls.settle()
    (probe,) = run.probes()
    assert (probe.n_values, probe.n_errors) == (0, 3)


def test_looking_takes_nothing_in(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.attach("0", nbp.window_quantity(Norms), "linear(3,2)")
    optimizer = sgd(model)
    for step in range(6):
        train_step(model, optimizer, batch(step))
        run.data.load()
        run.status()
    norms = norms_of(range(6))
    np.testing.assert_allclose(
        run.series("0", "norms").values, [sum(norms[:3]), sum(norms[3:])], rtol=1e-6
    )


def test_a_window_begins_anew_when_it_is_attached_again(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    quantity = nbp.window_quantity(Norms)
    handle = run.attach("0", quantity, "linear(4,3)")
    optimizer = sgd(model)
    for step in range(4):
        if step == 2:
            run.detach(handle)
            run.attach("0", quantity, "linear(4,3)")
        train_step(model, optimizer, batch(step))
    norms = norms_of(range(4))
    series = run.series("0", "norms")
    np.testing.assert_allclose(series.values, [sum(norms[2:])], rtol=1e-6)


def test_training_does_not_feel_a_window(watch: Watch) -> None:
    watched, plain = made(mlp), made(mlp)
    run = watch(watched, probes={"0": [[nbp.window_quantity(Norms), "linear(3,0)"]]})
    run.attach("0", nbp.window_quantity(Moved))
    for model in (watched, plain):
        train(model, sgd(model), batch, range(4))
    for one, other in zip(watched.parameters(), plain.parameters(), strict=True):
        assert torch.equal(one, other)


class NoCompute:
    def reset(self) -> None: ...
    def update(self, output: Tensor) -> None: ...


class NoFeature(Norms):
    def update(self, outputs: Any) -> None: ...


@pytest.mark.parametrize(
    ("kind", "says"),
    [(NoCompute, "has no compute"), (NoFeature, "no feature 'outputs'; close: 'output'")],
)
def test_a_class_that_cannot_be_a_window_is_refused(kind: type, says: str) -> None:
    with pytest.raises(QuantityError, match=says):
        nbp.window_quantity(kind)


def test_a_window_takes_calls_together_and_keeps_none_apart(watch: Watch) -> None:
    run = watch(made(mlp), probes=None)
    with pytest.raises(NotApplicableError, match="takes several calls together"):
        run.attach("0", nbp.window_quantity(Norms), per_call=True)


def test_a_second_class_of_the_name_is_refused_and_the_same_cell_run_twice_is_not() -> None:
    nbp.window_quantity(Norms)
    nbp.window_quantity(Norms)
    with pytest.raises(DuplicateNameError):
        nbp.window_quantity(Moved, name="norms")


def _train_on_device(folder: str) -> list[float]:
    model = moved(made(mlp))
    with nbp.watch(model, store=folder, probes=None) as run:
        run.attach("0", nbp.window_quantity(Norms), "linear(2,1)")
        optimizer = sgd(model)
        for step in range(4):
            train_step(model, optimizer, on_device(batch(step)))
    return [float(value) for value in run.series("0", "norms")]


def test_summaries_come_to_a_window_as_numbers_from_a_device_too(
    accelerator: Accelerator, tmp_path: Any
) -> None:
    found = accelerator.run(_train_on_device, str(tmp_path / "run.zarr"))
    norms = norms_of(range(4))
    np.testing.assert_allclose(found, [sum(norms[:2]), sum(norms[2:])], rtol=1e-5)
