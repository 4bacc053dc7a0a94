"""Many optimizers, later ones, other models' ones: whose step it is, and what it changed."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer

import notebook_probe as nbp
from tests.models import floats, loss_of, made, mlp
from tests.probes.parameters.optimizer_oracles import Diary, check, play
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch
from tests.run.oracle import norm, numbers

batch = floats(5, 4)


def backward(model: nn.Module, step: int) -> None:
    model.zero_grad()
    loss_of(model(batch(step))).backward()


def halves(model: nn.Module) -> tuple[Optimizer, Optimizer]:
    first, last = model.get_submodule("0"), model.get_submodule("2")
    return SGD(first.parameters(), lr=0.1, momentum=0.9), Adam(last.parameters(), lr=0.01)


@pytest.mark.parametrize("look", [None, "data", "status", "series"])
def test_optimizers_stepped_one_after_the_other_share_a_step(
    look: str | None, watch: Watch
) -> None:
    """Also when a display reads between them: what it sees is provisional."""
    runs: list[nbp.Run] = []

    def begin(model: nn.Module, **options: object) -> nbp.Run:
        runs.append(watch(model, **options))
        return runs[0]

    def refresh() -> None:
        for run in runs:
            if look == "data":
                run.data.load()
            elif look == "status":
                run.status()
                run.probes()
            elif look == "series":
                run.series("0.weight", "update_ratio").load()

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizers = halves(model)
        for step in range(3):
            backward(model, step)
            with diary.update(*optimizers):
                for optimizer in optimizers:
                    optimizer.step()
                    refresh()
        return optimizers

    check(*play(mlp, loop, begin))


def test_what_is_read_between_two_optimizers_holds_the_first_ones_part(watch: Watch) -> None:
    model = made(mlp)
    first, last = halves(model)
    run = watch(model, probes={"0.weight": ["update_ratio"], "2.weight": ["update_ratio"]})
    backward(model, 0)
    before = numbers([model.get_parameter("0.weight")])
    first.step()
    change = norm(numbers([model.get_parameter("0.weight")]) - before) / norm(before)
    seen = run.data.update_ratio.load()
    assert seen.step.values.tolist() == [0]
    assert float(seen.sel(module="0.weight")[0]) == pytest.approx(change, rel=1e-5)
    assert np.isnan(seen.sel(module="2.weight")[0])
    last.step()
    assert np.isfinite(run.data.update_ratio.sel(module="2.weight")).all()


def test_an_optimizer_of_each_parameter_may_step_inside_the_backward(watch: Watch) -> None:
    """As memory-saving trainers do: a gradient is applied and dropped before the next one comes."""

    def trained(model: nn.Module) -> dict[tuple[str, str], list[float]]:
        told: dict[tuple[str, str], list[float]] = {}
        optimizers: list[Optimizer] = []
        for name, value in model.named_parameters():
            optimizers.append(optimizer := AdamW([value], lr=0.01))

            def apply(value: Tensor, optimizer: Optimizer = optimizer, name: str = name) -> None:
                assert value.grad is not None
                before, gradient = numbers([value]), numbers([value.grad])
                optimizer.step()
                optimizer.zero_grad()
                change = norm(numbers([value]) - before) / norm(before)
                row = zip(("weight_norm", "grad_norm", "update_ratio"),
                          (norm(before), norm(gradient), change), strict=True)  # fmt: skip
                for quantity, number in row:
                    told.setdefault((name, quantity), []).append(number)

            value.register_post_accumulate_grad_hook(apply)
        for step in range(3):
            loss_of(model(batch(step))).backward()
        left.append(everything(model, optimizers))
        return told

    left: list[dict[str, bytes]] = []
    alone, watched = made(mlp), made(mlp)
    quantities = ["weight_norm", "grad_norm", "update_ratio"]
    run = watch(watched, probes={name: quantities for name, _ in watched.named_parameters()})
    expected = trained(alone)
    trained(watched)
    assert differing(*left) == []
    assert len(expected) == 12
    for (name, quantity), values in expected.items():
        series = run.series(name, quantity)
        assert series.step.values.tolist() == [0, 1, 2]
        np.testing.assert_allclose(series, values, rtol=1e-5, err_msg=f"{quantity} of {name}")


def test_an_optimizer_that_nobody_named_is_found_and_a_strangers_is_not(watch: Watch) -> None:
    """Made after watching began; another model of the same shape trains beside it."""

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        other = made(mlp, seed=2)
        foreign = SGD(other.parameters(), lr=10.0)
        optimizer = Adam(model.parameters(), lr=0.01)
        for step in range(3):
            backward(other, step)
            foreign.step()
            backward(model, step)
            foreign.step()
            with diary.update(optimizer):
                optimizer.step()
            foreign.step()
        return [optimizer, foreign]

    check(*play(mlp, loop, watch))


def test_a_new_optimizer_goes_on_with_the_next_step(watch: Watch) -> None:
    """A cell that makes the optimizer is run again."""
    makers: list[Callable[[nn.Module], Optimizer]] = [
        lambda model: SGD(model.parameters(), lr=0.1),
        lambda model: AdamW(model.parameters(), lr=0.01),
        lambda model: SGD(model.parameters(), lr=0.2, momentum=0.9),
    ]

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        for make in makers:
            optimizer = make(model)
            for step in range(2):
                backward(model, step)
                with diary.update(optimizer):
                    optimizer.step()
        return [optimizer]

    run, diary = play(mlp, loop, watch)
    check(run, diary)
    assert len(diary.entries) == 6


def test_what_no_optimizer_owns_has_a_weight_but_no_gradient_and_no_update(watch: Watch) -> None:
    """Until a parameter group takes it in; its gradient was there all along, and never applied."""

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = SGD(model.get_submodule("2").parameters(), lr=0.1)
        for step in range(4):
            if step == 2:
                rest = list(model.get_submodule("0").parameters())
                optimizer.add_param_group({"params": rest, "lr": 0.05})
            backward(model, step)
            with diary.update(optimizer):
                optimizer.step()
        return [optimizer]

    run, diary = play(mlp, loop, watch)
    check(run, diary)
    assert run.series("0.weight", "weight_norm").step.values.tolist() == [0, 1, 2, 3]
    for quantity in ("grad_norm", "update_ratio"):
        assert run.series("0.weight", quantity).step.values.tolist() == [2, 3]
        assert run.series("2.weight", quantity).step.values.tolist() == [0, 1, 2, 3]


def test_a_new_optimizer_that_steps_with_a_closure_begins_a_step_of_its_own(watch: Watch) -> None:
    """Its first forward comes inside its step, after the old optimizer's last one has ended."""

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        for rate in (0.1, 0.2):
            optimizer = SGD(model.parameters(), lr=rate, momentum=0.9)
            for step in range(3):

                def closure(optimizer: Optimizer = optimizer, step: int = step) -> float:
                    optimizer.zero_grad()
                    loss = loss_of(model(batch(step)))
                    loss.backward()
                    diary.gradients()
                    return loss.item()

                with diary.update(optimizer):
                    optimizer.step(closure)
        return [optimizer]

    run, diary = play(mlp, loop, watch)
    check(run, diary)
    assert len(diary.entries) == 6


def test_a_gradient_that_a_hook_of_the_optimizer_clips_is_recorded_clipped(watch: Watch) -> None:
    """torch calls the hooks of all optimizers first, then those of this one."""

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = SGD(model.parameters(), lr=0.1)

        def clip(*args: object) -> None:
            nn.utils.clip_grad_norm_(model.parameters(), 1e-3)
            diary.gradients()

        handle = optimizer.register_step_pre_hook(clip)
        for step in range(4):
            if step == 3:
                handle.remove()
            optimizer.zero_grad()
            loss_of(model(batch(step))).backward()
            with diary.update(optimizer):
                optimizer.step()
        assert not optimizer._optimizer_step_pre_hooks
        return [optimizer]

    run, diary = play(mlp, loop, watch)
    check(run, diary)
    sizes = run.data.grad_norm.sel(module=["0.weight", "0.bias", "2.weight", "2.bias"])
    assert (np.sqrt((sizes**2).sum("module"))[:3] < 1.001e-3).all()


# ---------------------------------------------------------------- saved, copied, loaded


def load_back(model: nn.Module, optimizer: Optimizer) -> None:
    """What restoring the best epoch does; the state's tensors are others afterwards."""
    kept = copy.deepcopy(model.state_dict()), copy.deepcopy(optimizer.state_dict())
    with torch.no_grad():
        for value in model.parameters():
            value.add_(1.0)
    model.load_state_dict(kept[0])
    optimizer.load_state_dict(kept[1])


def assign_back(model: nn.Module, optimizer: Optimizer) -> None:
    """Loading by assignment replaces the parameters: the optimizer holds the old ones."""
    model.load_state_dict({k: 2 * v.clone() for k, v in model.state_dict().items()}, assign=True)
    optimizer.param_groups[0]["params"] = list(model.parameters())
    optimizer.state.clear()


def copy_it(model: nn.Module, optimizer: Optimizer) -> None:
    copy.deepcopy(optimizer).step()


def pickle_it(model: nn.Module, optimizer: Optimizer) -> None:
    pickle.loads(pickle.dumps(optimizer)).step()


@pytest.mark.parametrize("do", [load_back, assign_back, copy_it, pickle_it])
def test_series_go_on_when_model_and_optimizer_are_saved_and_loaded(
    do: Callable[[nn.Module, Optimizer], None], watch: Watch
) -> None:
    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = Adam(model.parameters(), lr=0.01)
        for step in range(4):
            if step == 2:
                do(model, optimizer)
            backward(model, step)
            with diary.update(optimizer):
                optimizer.step()
        return [optimizer]

    run, diary = play(mlp, loop, watch)
    check(run, diary)
    assert len(diary.entries) == 4
