"""Evaluation on an axis of its own, when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from notebook_probe.quantities.reduce.stat import Stat
from tests.evaluations import EVALUATIONS, evaluation, inference
from tests.models import floats, made
from tests.probes.oracles import Noted, column, float64, norm_of, same_column, train_alike
from tests.run.conftest import Watch
from tests.run.oracle import norm

batch = floats(6, 4)
STEPS = range(3)


class Small(Noted):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.drop, self.last = nn.Linear(4, 5), nn.Dropout(0.3), nn.Linear(5, 2)
        self.seen: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        first = self.first(x)
        if not (self.training and torch.is_grad_enabled()):
            self.seen.append(first.detach().clone())
        return self.last(self.drop(first).relu())


def loop_with(validate: Callable[[nn.Module, Tensor], None], n_batches: int) -> Any:
    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model(batch(step)).square().mean().backward()
            optimizer.step()
            for i in range(n_batches):
                validate(model, 10 * batch(100 + 10 * step + i))

    return loop


@pytest.mark.parametrize("validate", EVALUATIONS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("n_batches", [1, 3])
def test_a_validation_is_one_record_at_the_number_of_updates_before_it(
    n_batches: int, validate: Callable[[nn.Module, Tensor], None], watch: Watch
) -> None:
    twin, model = made(Small), made(Small)
    run = watch(model, probes={"first": ["output_norm", "input_norm"]})
    run.attach("first", ["output_norm", "output_mean", "output_std", "input_norm"], phase="eval")
    train_alike(loop_with(validate, n_batches), twin, model)
    run.controls.settle()
    seen = [float64(tensor) for tensor in twin.seen]
    pooled = [np.concatenate(seen[n_batches * i : n_batches * (i + 1)]) for i in STEPS]
    found = run.series("first", "eval_output_norm")
    assert found.step.values.tolist() == [1, 2, 3], "updates made before the validation"
    assert run.series("first", "eval_calls").values.tolist() == [n_batches] * 3
    assert run.series("first", "calls").values.tolist() == [1, 1, 1]
    np.testing.assert_allclose(found, [norm(y) for y in pooled], rtol=1e-5)
    np.testing.assert_allclose(
        run.series("first", "eval_output_mean"), [y.mean() for y in pooled], rtol=1e-4
    )
    np.testing.assert_allclose(
        run.series("first", "eval_output_std"), [y.std(ddof=1) for y in pooled], rtol=1e-5
    )
    given = [norm_of(*(10 * batch(100 + 10 * i + k) for k in range(n_batches))) for i in STEPS]
    np.testing.assert_allclose(run.series("first", "eval_input_norm"), given, rtol=1e-5)
    # and the training series are what they are without
    assert run.series("first", "input_norm").step.values.tolist() == [0, 1, 2]
    np.testing.assert_allclose(
        run.series("first", "input_norm"), [norm_of(batch(i)) for i in STEPS], rtol=1e-5
    )


def test_evaluation_before_the_first_update_is_at_step_zero(watch: Watch) -> None:
    model = made(Small)
    run = watch(model, probes=None)
    run.attach("first", "input_norm", phase="eval")
    evaluation(model, batch(7))
    run.controls.settle()
    found = run.series("first", "eval_input_norm")
    assert found.step.values.tolist() == [0]
    assert float(found[0]) == pytest.approx(norm_of(batch(7)), rel=1e-6)


def test_evaluation_is_not_measured_where_only_training_is_asked_for(watch: Watch) -> None:
    twin, model = made(Small), made(Small)
    run = watch(model, probes={"first": ["output_norm"]})
    train_alike(loop_with(evaluation, 2), twin, model)
    run.controls.settle()
    assert not [name for name in run.data.data_vars if str(name).startswith("eval_")]


def test_training_is_not_measured_where_only_evaluation_is_asked_for(watch: Watch) -> None:
    twin, model = made(Small), made(Small)
    run = watch(model, probes=None)
    run.attach("first", "output_norm", phase="eval")
    train_alike(loop_with(evaluation, 1), twin, model)
    run.controls.settle()
    assert "output_norm" not in run.data.data_vars
    assert len(run.series("first", "eval_output_norm")) == 3


def rows(output: Tensor) -> float:
    return float(len(output))


def broken_share(output_nonfinite: Stat) -> Any:
    return output_nonfinite.n_nonfinite / output_nonfinite.n


def test_own_quantities_are_measured_in_evaluation_too(watch: Watch) -> None:
    model = made(Small)
    run = watch(model, probes=None)
    run.attach("first", [rows, broken_share], phase="eval")
    evaluation(model, batch(0))
    inference(model, batch(1))
    run.controls.settle()
    assert column(run, "first", "eval_rows") == [6.0]
    same_column(run, "first", "eval_broken_share", [0.0])
    assert not run.status().errors


def test_the_validation_of_a_part_alone_is_measured_there(watch: Watch) -> None:
    model = made(Small)
    run = watch(model, probes=None)
    run.attach(("first", "last"), "input_norm", phase="eval")
    with torch.no_grad():
        model.first(batch(3))
    run.controls.settle()
    assert float(run.series("first", "eval_input_norm")[0]) == pytest.approx(
        norm_of(batch(3)), rel=1e-6
    )
    assert np.isnan(run.data.eval_input_norm.sel(module="last")).all()


def test_an_evaluation_inside_a_step_has_the_updates_before_that_step(watch: Watch) -> None:
    """Between forward and backward the open step has not been updated yet."""

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            loss = model(batch(step)).square().mean()
            evaluation(model, batch(50 + step))
            loss.backward()
            optimizer.step()

    twin, model = made(Small), made(Small)
    run = watch(model, probes={"first": ["input_norm"]})
    run.attach("first", "input_norm", phase="eval")
    train_alike(loop, twin, model)
    run.controls.settle()
    found = run.series("first", "eval_input_norm")
    assert found.step.values.tolist() == [0, 1, 2]
    np.testing.assert_allclose(found, [norm_of(batch(50 + i)) for i in STEPS], rtol=1e-5)
    np.testing.assert_allclose(
        run.series("first", "input_norm"), [norm_of(batch(i)) for i in STEPS], rtol=1e-5
    )
