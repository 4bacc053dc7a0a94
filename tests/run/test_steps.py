"""One optimizer step is one row, whatever the loop looks like."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import LBFGS, SGD, Adam, Optimizer
from torch.utils.checkpoint import checkpoint

import notebook_probe as nbp
from tests.models import floats, loss_of, made, mlp, sgd, train, train_step
from tests.run.conftest import Watch

batch = floats(5, 4)
HUGE = torch.full((5, 4), 1e6)


def steps_of(run: nbp.Run) -> list[int]:
    return run.data.step.values.tolist()


def norm_of(values: Tensor) -> float:
    return float(np.linalg.norm(values.detach().double().numpy()))


def test_one_optimizer_step_is_one_row(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    train(model, sgd(model), batch, range(4))
    assert steps_of(run) == [0, 1, 2, 3]
    assert run.status().step == 4


def plain_evaluation(model: nn.Module) -> None:
    model.eval()
    with torch.no_grad():
        model(HUGE)
    model.train()


def inference(model: nn.Module) -> None:
    model.eval()
    with torch.inference_mode():
        model(HUGE)
    model.train()


def evaluation_with_gradients(model: nn.Module) -> None:
    model.eval()
    model(HUGE)
    model.train()


def no_grad_in_train_mode(model: nn.Module) -> None:
    with torch.no_grad():
        model(HUGE)


def a_part_alone(model: nn.Module) -> None:
    with torch.no_grad():
        model.get_submodule("0")(HUGE)


VALIDATIONS = [
    plain_evaluation,
    inference,
    evaluation_with_gradients,
    no_grad_in_train_mode,
    a_part_alone,
]


@pytest.mark.parametrize("validate", VALIDATIONS, ids=lambda f: f.__name__)
def test_validation_between_steps_is_not_measured(
    validate: Callable[[nn.Module], None], watch: Watch
) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model, probes={"*": ["output_norm", "input_norm"]})
    validate(model)
    for step in range(3):
        train_step(model, optimizer, batch(step))
        validate(model)
    assert steps_of(run) == [0, 1, 2]
    assert float(run.data.output_norm.max()) < 1e3


@pytest.mark.parametrize("validate", VALIDATIONS, ids=lambda f: f.__name__)
def test_validation_between_forward_and_backward_is_not_measured(
    validate: Callable[[nn.Module], None], watch: Watch
) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model)
    output = model(batch(0))
    wanted = norm_of(output)
    validate(model)
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


def test_a_step_of_lbfgs_is_one_row_however_often_it_asks_its_closure(watch: Watch) -> None:
    model = made(mlp)
    optimizer = LBFGS(model.parameters(), lr=0.1, max_iter=4)
    run = watch(model)
    calls: list[float] = []
    gradients: list[float] = []

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = loss_of(model(batch(0)))
        loss.backward()
        calls.append(loss.item())
        gradients.append(norm_of(model.get_parameter("0.weight").grad))  # type: ignore[arg-type]
        return loss

    before = norm_of(model.get_parameter("0.weight"))
    for _ in range(3):
        optimizer.step(closure)
    assert len(calls) > 6
    assert steps_of(run) == [0, 1, 2]
    assert float(run.series("0", "weight_norm")[0]) == pytest.approx(before, rel=1e-6)
    run.attach("0.weight", "grad_norm")
    first = len(gradients)
    optimizer.step(closure)
    assert len(gradients) > first
    assert float(run.series("0.weight", "grad_norm")[-1]) == pytest.approx(gradients[-1], rel=1e-5)


def test_a_keyword_closure_is_heard_too(watch: Watch) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model)

    def closure() -> float:
        optimizer.zero_grad()
        loss = loss_of(model(batch(0)))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
        return loss.item()

    for _ in range(2):
        optimizer.step(closure=closure)
    assert steps_of(run) == [0, 1]
    everything = [float(run.series(module, "grad_norm")[0]) for module in ("0", "2")]
    assert math.hypot(*everything) == pytest.approx(1e-3, rel=1e-2), "clipped in the closure"


def two_parts(model: nn.Module) -> tuple[Optimizer, Optimizer]:
    first, last = model.get_submodule("0"), model.get_submodule("2")
    return SGD(first.parameters(), lr=0.1), Adam(last.parameters(), lr=0.01)


def test_two_optimizers_back_to_back_are_one_step(watch: Watch) -> None:
    model = made(mlp)
    optimizers = two_parts(model)
    run = watch(model)
    for step in range(3):
        loss_of(model(batch(step))).backward()
        for optimizer in optimizers:
            optimizer.step()
            run.data.load()
        for optimizer in optimizers:
            optimizer.zero_grad()
    assert steps_of(run) == [0, 1, 2]
    for quantity in ("grad_norm", "update_ratio", "weight_norm"):
        assert np.isfinite(run.data[quantity].sel(module=["0", "2"])).all()


def test_a_forward_between_two_optimizers_parts_two_steps(watch: Watch) -> None:
    model = made(mlp)
    first, last = two_parts(model)
    run = watch(model)
    for _ in range(2):
        for optimizer in (first, last):
            loss_of(model(batch(0))).backward()
            optimizer.step()
            model.zero_grad()
    assert steps_of(run) == [0, 1, 2, 3]
    ratios = run.data.update_ratio.load()
    assert np.isfinite(ratios.sel(module="0")).values.tolist() == [True, False, True, False]
    assert np.isfinite(ratios.sel(module="2")).values.tolist() == [False, True, False, True]


def test_one_optimizer_for_each_parameter_is_one_step(watch: Watch) -> None:
    model = made(mlp)
    optimizers = [SGD([value], lr=0.1) for value in model.parameters()]
    run = watch(model)
    for step in range(3):
        loss_of(model(batch(step))).backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
    assert steps_of(run) == [0, 1, 2]
    assert np.isfinite(run.data.grad_norm.sel(module=["0", "2"])).all()


class Decayed(SGD):
    """A subclass that changes the weights after the step it inherits."""

    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = super().step(closure)
        with torch.no_grad():
            for group in self.param_groups:
                for value in group["params"]:
                    value.mul_(0.5)
        return loss


def test_a_subclass_that_calls_super_step_makes_one_step(watch: Watch) -> None:
    model = made(mlp)
    optimizer = Decayed(model.parameters(), lr=0.0)
    run = watch(model)
    train(model, optimizer, batch, range(3))
    assert steps_of(run) == [0, 1, 2]
    np.testing.assert_allclose(run.series("0", "update_ratio"), 0.5, rtol=1e-5)


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
    both = norm_of(torch.cat([batch(1), batch(2)]))
    pooled = float(run.series("0", "input_norm").sel(step=1))
    assert pooled == pytest.approx(both, rel=1e-6), "the failed step's forward pools with the next"


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


def test_another_models_optimizer_is_ignored(watch: Watch) -> None:
    model, other = made(mlp), made(mlp)
    optimizer, foreign = sgd(model), sgd(other)
    run = watch(model)
    for step in range(3):
        train_step(other, foreign, batch(step))
        train_step(model, optimizer, batch(step))
        train_step(other, foreign, batch(step))
    assert steps_of(run) == [0, 1, 2]


def test_two_models_of_a_gan_have_a_clock_each(watch: Watch) -> None:
    generator, critic = made(mlp), nn.Sequential(nn.Linear(2, 1))
    runs = watch(generator), watch(critic)
    make, judge = sgd(generator), sgd(critic)
    for step in range(2):
        for part in range(3):
            judge.zero_grad()
            critic(generator(batch(3 * step + part)).detach()).mean().backward()
            judge.step()
        make.zero_grad()
        critic(generator(batch(step))).mean().backward()
        make.step()
    assert steps_of(runs[0]) == [0, 1]
    assert steps_of(runs[1]) == list(range(6))


def test_an_optimizer_made_after_watching_is_found(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    for optimizer in (sgd(model), Adam(model.parameters()), sgd(model)):
        train(model, optimizer, batch, range(2))
    assert steps_of(run) == [0, 1, 2, 3, 4, 5]


def test_a_parameter_group_that_comes_later_is_measured_from_then_on(watch: Watch) -> None:
    model = made(mlp)
    optimizer = SGD(model.get_submodule("2").parameters(), lr=0.1)
    run = watch(model)
    train_step(model, optimizer, batch(0))
    optimizer.add_param_group({"params": list(model.get_submodule("0").parameters())})
    train_step(model, optimizer, batch(1))
    assert run.series("0", "update_ratio").step.values.tolist() == [1]
    assert run.series("0", "grad_norm").step.values.tolist() == [1]


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
