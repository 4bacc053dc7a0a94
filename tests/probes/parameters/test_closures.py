"""Steps that run a closure: the gradients are those that the closure left."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import LBFGS, SGD, AdamW, Optimizer

import notebook_probe as nbp
from tests.models import floats, loss_of, made, mlp
from tests.probes.parameters.optimizer_oracles import Diary, check, play
from tests.run.conftest import Watch
from tests.run.oracle import norm, numbers

batch = floats(5, 4)


def closure_of(
    model: nn.Module, optimizer: Optimizer, diary: Diary, given: Tensor, clip: float | None = None
) -> Callable[[], float]:
    def closure() -> float:
        optimizer.zero_grad()
        loss = loss_of(model(given))
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        diary.gradients()
        return loss.item()

    return closure


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda values: SGD(values, lr=0.1, momentum=0.9),
        lambda values: AdamW(values, lr=0.01, fused=True),
    ],
    ids=["sgd", "fused adamw"],
)
def test_what_a_closure_leaves_is_what_is_recorded_at_its_own_step(
    make: Callable[..., Optimizer], by_name: bool, watch: Watch
) -> None:
    """Clipped in the closure; forward, gradient and update of one closure share a step."""

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = make(model.parameters())
        for step in range(3):
            closure = closure_of(model, optimizer, diary, batch(step), clip=0.01 * (step + 1))
            with diary.update(optimizer):
                optimizer.step(closure=closure) if by_name else optimizer.step(closure)
        return [optimizer]

    run, diary = play(mlp, loop, watch)
    check(run, diary)
    sizes = run.data.grad_norm.sel(module=["0.weight", "0.bias", "2.weight", "2.bias"])
    np.testing.assert_allclose(np.sqrt((sizes**2).sum("module")), [0.01, 0.02, 0.03], rtol=1e-3)


def test_gradients_that_lie_there_before_the_closure_are_not_recorded(watch: Watch) -> None:
    """A stale gradient of a thousand times the size is what a reading before the closure gives."""

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = SGD(model.parameters(), lr=0.1)
        for value in model.parameters():
            value.grad = torch.full_like(value, 1e6)
        for step in range(2):
            with diary.update(optimizer):
                optimizer.step(closure_of(model, optimizer, diary, batch(step)))
        return [optimizer]

    run, diary = play(mlp, loop, watch)
    check(run, diary)
    assert float(run.data.grad_norm.max()) < 10


def test_a_closure_that_stays_out_of_gradients_mode_is_read_too(watch: Watch) -> None:
    """An optimizer of one's own calls its closure without turning gradients on first."""

    class Own(SGD):
        def step(self, closure: Callable[[], float]) -> float:  # type: ignore[override]
            loss = closure()
            with torch.no_grad():
                for group in self.param_groups:
                    for value in group["params"]:
                        value.sub_(0.1 * value.grad.sign())
            return loss

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = Own(model.parameters())
        for step in range(3):
            with diary.update(optimizer):
                optimizer.step(closure_of(model, optimizer, diary, batch(step)))
        return [optimizer]

    check(*play(mlp, loop, watch))


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_a_step_of_lbfgs_pools_all_its_closure_runs(search: str | None, watch: Watch) -> None:
    """One step: the weight before it, every forward in it, the last gradient, the whole change."""
    runs: list[int] = []

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = LBFGS(model.parameters(), lr=0.1, max_iter=4, line_search_fn=search)
        for step in range(3):
            closure = closure_of(model, optimizer, diary, batch(step))
            counted = [0]

            def run(closure: Callable[[], float] = closure, n: list[int] = counted) -> float:
                n[0] += 1
                return closure()

            with diary.update(optimizer):
                optimizer.step(run)
            runs.append(counted[0])
        return [optimizer]

    run, diary = play(mlp, loop, watch)
    check(run, diary)
    assert [len(entry.calls["0"]["output_norm"]) for entry in diary.entries] == runs[:3]
    assert min(runs) > 1


def test_a_closure_that_raises_makes_no_step(watch: Watch) -> None:
    """It is no part of that of the closure which succeeds, not even as a discarded backward."""
    model = made(mlp)
    optimizer = SGD(model.parameters(), lr=0.1)
    run = watch(model, probes={"0": ["input_norm", "update_ratio"], "0.weight": ["grad_norm"]})

    def closure(given: Tensor, error: Exception | None = None) -> Callable[[], float]:
        def run() -> float:
            optimizer.zero_grad()
            loss = loss_of(model(given))
            loss.backward()
            if error is not None:
                raise error
            return loss.item()

        return run

    optimizer.step(closure(batch(0)))
    with pytest.raises(FloatingPointError):
        optimizer.step(closure(batch(1), FloatingPointError("no number")))
    before = numbers([model.get_parameter("0.weight")])
    optimizer.step(closure(batch(2)))
    gradient = model.get_parameter("0.weight").grad
    assert gradient is not None
    assert run.data.step.values.tolist() == [0, 1]
    given = norm(numbers([batch(2)]))
    assert float(run.series("0", "input_norm")[1]) == pytest.approx(given, rel=1e-6)
    assert "discarded_backwards" not in run.data
    assert float(run.series("0.weight", "grad_norm")[1]) == pytest.approx(
        norm(numbers([gradient])), rel=1e-6
    )
    change = norm(numbers([model.get_parameter("0.weight")]) - before) / norm(before)
    assert float(run.series("0", "update_ratio")[1]) == pytest.approx(change, rel=1e-5)


def test_functions_of_gradients_take_each_parameters_last_one_once(watch: Watch) -> None:
    """Of a closure's runs the last counts, of a module with four weights every weight."""

    def applied(grad: Tensor) -> Tensor:
        return grad.norm()

    def accumulated(grad_raw: Tensor) -> Tensor:
        return grad_raw.norm()

    model = nn.LSTM(3, 4)
    optimizer = LBFGS(model.parameters(), lr=0.1, max_iter=3)
    sizes: list[list[float]] = []

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = model(torch.ones(2, 1, 3))[0].square().mean()
        loss.backward()
        grads = [value.grad for value in model.parameters()]
        sizes.append([norm(numbers([grad])) for grad in grads if grad is not None])
        return loss

    every = [nbp.quantity(combine="sum")(function) for function in (applied, accumulated)]
    run = watch(model, probes={"": every, "bias_hh_l0": every})
    optimizer.step(closure)
    assert len(sizes) > 1
    for name in ("applied", "accumulated"):
        found = run.data[name].isel(step=0)
        np.testing.assert_allclose(found.sel(module="(root)"), sum(sizes[-1]), rtol=1e-5)
        np.testing.assert_allclose(found.sel(module="bias_hh_l0"), sizes[-1][3], rtol=1e-5)


class Switched(nn.Module):
    """Two branches, of which one is used at a time."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(4, 2), nn.Linear(4, 2)
        self.uses_other = False

    def forward(self, x: Tensor) -> Tensor:
        return self.other(x) if self.uses_other else self.one(x)


class RunsTwice(SGD):
    """Looks at the gradient in one place, and applies that of another."""

    def step(self, closure: Callable[[], float]) -> float:  # type: ignore[override]
        for _ in range(2):
            with torch.enable_grad():
                loss = closure()
        super().step()
        return loss


def test_a_gradient_that_only_an_earlier_run_of_the_closure_left_is_not_recorded(
    watch: Watch,
) -> None:
    def given_alone(grad: Tensor) -> Tensor:
        return grad.norm()

    def given_afterwards(grad: Tensor, update: Tensor) -> Tensor:
        return grad.norm() + 0 * update.norm()

    quantities = [given_alone, given_afterwards, "grad_norm", "grad_abs_max"]
    model = made(Switched)
    optimizer = RunsTwice(model.parameters(), lr=0.1)
    places = ["one.weight", "other.weight"]
    run = watch(model, probes=dict.fromkeys(places, quantities))
    wanted: list[float] = []

    def closure() -> float:
        model.uses_other = not model.uses_other
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model(batch(len(wanted))))
        loss.backward()
        return loss.item()

    for first in (True, False):
        model.uses_other = first  # and the other way round in the run that counts
        optimizer.step(closure)
        weights = [model.get_parameter(place).grad for place in places]
        wanted += [np.nan if grad is None else norm(numbers([grad])) for grad in weights]
    assert np.isnan(wanted).sum() == 2
    for name in ("given_alone", "given_afterwards", "grad_norm"):
        found = run.data[name].sel(module=places).transpose("step", "module").values.ravel()
        np.testing.assert_allclose(found, wanted, rtol=1e-5, err_msg=name)
    assert np.isnan(run.data.grad_abs_max.sel(module=places)).values.sum() == 2
