"""One optimizer step is one row, whatever the loop looks like."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD
from torch.utils.checkpoint import checkpoint

import notebook_probe as nbp
from tests.evaluations import EVALUATIONS
from tests.models import floats, loss_of, made, mlp, sgd, train, train_step
from tests.run.conftest import Watch
from tests.run.oracle import norm_of, steps_of

batch = floats(5, 4)
HUGE = torch.full((5, 4), 1e6)


def test_one_optimizer_step_is_one_row(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    train(model, sgd(model), batch, range(4))
    assert steps_of(run) == [0, 1, 2, 3]
    assert run.status().step == 4


def a_part_alone(model: nn.Module, batch: Tensor) -> None:
    with torch.no_grad():
        model.get_submodule("0")(batch)


VALIDATIONS = [
    *EVALUATIONS,
    a_part_alone,
]


@pytest.mark.parametrize("validate", VALIDATIONS, ids=lambda f: f.__name__)
def test_validation_between_steps_is_not_measured(
    validate: Callable[[nn.Module, Tensor], None], watch: Watch
) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model, probes={"*": ["output_norm", "input_norm"]})
    validate(model, HUGE)
    for step in range(3):
        train_step(model, optimizer, batch(step))
        validate(model, HUGE)
    assert steps_of(run) == [0, 1, 2]
    assert float(run.data.output_norm.max()) < 1e3


@pytest.mark.parametrize("validate", VALIDATIONS, ids=lambda f: f.__name__)
def test_validation_between_forward_and_backward_is_not_measured(
    validate: Callable[[nn.Module, Tensor], None], watch: Watch
) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model)
    output = model(batch(0))
    wanted = norm_of(output)
    validate(model, HUGE)
    loss_of(output).backward()
    optimizer.step()
    found = run.data.sel(module="2").isel(step=0).load()
    assert float(found.output_norm) == pytest.approx(wanted, rel=1e-6)
    assert float(found.output_grad_norm) > 0
    assert steps_of(run) == [0]


def test_a_frozen_part_in_eval_mode_counts_as_training(watch: Watch) -> None:
    model = made(mlp)
    model.get_submodule("0").eval()
    run = watch(model)
    train_step(model, sgd(model), batch(0))
    assert len(run.series("0", "output_norm")) == 1


def test_micro_batches_make_one_step(watch: Watch) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model)
    for step in range(3):
        optimizer.zero_grad()
        for micro in range(4):
            loss_of(model(batch(4 * step + micro))).backward()
        optimizer.step()
    assert steps_of(run) == [0, 1, 2]


class Fragile(SGD):
    """Raises in its second step."""

    n_steps = 0

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        self.n_steps += 1
        if self.n_steps == 2:
            raise FloatingPointError("a loss scaler would")
        return super().step(closure)


def test_a_step_that_raises_is_no_step_and_the_next_is_normal(watch: Watch) -> None:
    model = made(mlp)
    optimizer = Fragile(model.parameters(), lr=0.1)
    run = watch(model, probes={"0": ["input_norm", "update_ratio"]})
    train_step(model, optimizer, batch(0))
    with pytest.raises(FloatingPointError):
        train_step(model, optimizer, batch(1))
    train_step(model, optimizer, batch(2))
    train_step(model, optimizer, batch(3))
    assert steps_of(run) == [0, 1, 2]
    assert np.isfinite(run.data.update_ratio.sel(module="0")).all()
    found = float(run.series("0", "input_norm").sel(step=1))
    assert found == pytest.approx(norm_of(batch(2)), rel=1e-6), "nothing of the failed step stays"


class Interrupted(nn.Module):
    """Breaks off in the middle of a forward when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.net = mlp()
        self.error: BaseException | None = None

    def forward(self, x: Tensor) -> Tensor:
        output = self.net(x)
        if self.error is not None:
            raise self.error
        return output


@pytest.mark.parametrize("error", [ValueError("bad batch"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("validate_part", [False, True])
def test_an_interrupted_forward_leaves_no_stuck_phase(
    error: BaseException, validate_part: bool, watch: Watch
) -> None:
    model = Interrupted()
    optimizer = sgd(model)
    run = watch(model, probes={"net.0": ["output_norm"]})
    train_step(model, optimizer, batch(0))
    model.error = error
    with pytest.raises(type(error)):
        train_step(model, optimizer, batch(1))
    model.error = None
    with torch.no_grad():
        if validate_part:
            model.net(HUGE)
        else:
            model.eval()(HUGE)
            model.train()
    for step in (2, 3):
        train_step(model, optimizer, batch(step))
    assert steps_of(run) == [0, 1, 2]
    assert float(run.series("net.0", "output_norm").max()) < 1e3


class Unentered(nn.Module):
    """Used through a method of its own, as trainers do: its forward is never called."""

    def __init__(self) -> None:
        super().__init__()
        self.net = mlp()

    def training_step(self, x: Tensor) -> Tensor:
        return loss_of(self.net(x))


@pytest.mark.parametrize("schedule", ["every(1)", "every(3)", "every(3, 1)"])
def test_a_model_that_is_entered_through_its_parts_is_measured(schedule: str, watch: Watch) -> None:
    model = Unentered()
    optimizer = sgd(model)
    run = watch(model, probes={"net.0": [[q, schedule] for q in ("output_norm", "weight_norm")]})
    for step in range(7):
        optimizer.zero_grad()
        model.training_step(batch(step)).backward()
        optimizer.step()
    due = [step for step in range(7) if nbp.schedules.schedule(schedule)(step)]
    assert run.series("net.0", "weight_norm").step.values.tolist() == due
    assert run.series("net.0", "output_norm").step.values.tolist() == due


def test_the_schedule_of_a_part_does_not_shift_its_values(watch: Watch) -> None:
    """The forward that is measured is the one of the step it is written to."""
    model = Unentered()
    optimizer = sgd(model, lr=0.0)  # the weights stay: outputs differ by batch alone
    run = watch(model, probes={"net.0": [["output_norm", "every(2, 1)"]]})
    with torch.no_grad():
        wanted = [norm_of(model.net[0](batch(step))) for step in range(6)]
    for step in range(6):
        model.training_step(batch(step)).backward()
        optimizer.step()
    np.testing.assert_allclose(run.series("net.0", "output_norm"), wanted[1::2], rtol=1e-6)


def test_steps_can_be_closed_by_hand_without_an_optimizer(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    sizes = []
    for step in range(3):
        model.zero_grad()
        loss_of(model(batch(step))).backward()
        sizes.append(norm_of(model.get_parameter("0.weight")))
        run.step()
        with torch.no_grad():
            for value in model.parameters():
                if value.grad is not None:
                    value.sub_(0.1 * value.grad)
    assert steps_of(run) == [0, 1, 2]
    np.testing.assert_allclose(run.series("0", "weight_norm"), sizes, rtol=1e-6)
    assert np.isfinite(run.series("0", "grad_norm")).all()
    assert math.isnan(run.data.update_ratio.sel(module="0")[0]), "nobody said when it changed"


def test_after_a_step_by_hand_optimizers_close_no_more(watch: Watch) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model)
    for step in range(4):
        for _ in range(2):
            train_step(model, optimizer, batch(step))
        run.step()
    first, *rest = steps_of(run)[-4:]
    assert rest == [first + 1, first + 2, first + 3]
    assert np.isfinite(run.data.update_ratio.sel(module="0")).all()


@pytest.mark.parametrize("reentrant", [False, True])
def test_recomputation_in_the_backward_is_no_second_call(reentrant: bool, watch: Watch) -> None:
    class Recomputed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = mlp()

        def forward(self, x: Tensor) -> Tensor:
            return checkpoint(self.block, x, use_reentrant=reentrant)

    model = Recomputed()
    optimizer = sgd(model)
    run = watch(model, probes={"block.0": ["input_norm"]})
    given = batch(0).requires_grad_()
    optimizer.zero_grad()
    loss_of(model(given)).backward()
    optimizer.step()
    assert steps_of(run) == [0]
    found = run.data.input_norm.sel(module="block.0")
    assert float(found[0]) == pytest.approx(norm_of(given), rel=1e-6)


def test_a_graph_that_is_kept_and_run_twice_raises_nothing(watch: Watch) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model)
    loss = loss_of(model(batch(0)))
    loss.backward(retain_graph=True)
    loss.backward()
    optimizer.step()
    gradients = torch.autograd.grad(
        loss_of(model(batch(1))), list(model.parameters()), create_graph=True
    )
    sum((gradient.square().sum() for gradient in gradients), torch.zeros(())).backward()
    optimizer.step()
    assert steps_of(run) == [0, 1]
    assert not run.status().errors
