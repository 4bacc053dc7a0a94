"""Optimizers round optimizers, subclasses, schedulers that patch: one update is one step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer
from torch.optim.lr_scheduler import LRScheduler, OneCycleLR, ReduceLROnPlateau, StepLR

import notebook_probe as nbp
from tests.models import floats, loss_of, made, mlp
from tests.probes.parameters.optimizer_oracles import Diary, check, play
from tests.run.conftest import Watch
from tests.run.oracle import norm_of

batch = floats(5, 4)


def backward(model: nn.Module, step: int) -> None:
    model.zero_grad()
    loss_of(model(batch(step))).backward()


def plain_loop(make: Callable[[nn.Module], Optimizer]) -> Callable[..., Sequence[Optimizer]]:
    """Three steps of the optimizer that ``make`` gives."""

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = make(model)
        for step in range(3):
            backward(model, step)
            with diary.update(optimizer):
                optimizer.step()
        return [optimizer]

    return loop


class Decayed(Adam):
    """Shrinks the weights after the step it inherits."""

    def step(self, closure: Any = None) -> Any:
        loss = super().step(closure)
        with torch.no_grad():
            for group in self.param_groups:
                for value in group["params"]:
                    value.mul_(0.9)
        return loss


class Clamped(Decayed):
    """And keeps them small: the hooks fire three times."""

    def step(self, closure: Any = None) -> Any:
        loss = super().step(closure)
        with torch.no_grad():
            for group in self.param_groups:
                for value in group["params"]:
                    value.clamp_(-0.2, 0.2)
        return loss


class Twice(SGD):
    """Takes the inherited step two times in one."""

    def step(self, closure: Any = None) -> Any:
        super().step(closure)
        return super().step(None)


@pytest.mark.parametrize("kind", [Decayed, Clamped, Twice])
def test_what_a_subclass_does_round_the_inherited_step_is_part_of_it(
    kind: type[Adam], watch: Watch
) -> None:
    check(*play(mlp, plain_loop(lambda model: kind(model.parameters(), lr=0.01)), watch))


class Failing(SGD):
    """Raises in the second of its steps, before or after it changed the first weight."""

    n_steps = 0

    def __init__(self, values: Any, error: BaseException) -> None:
        super().__init__(values, lr=0.1)
        self.error = error

    def step(self, closure: Any = None) -> Any:
        self.n_steps += 1
        if self.n_steps == 2:
            with torch.no_grad():
                self.param_groups[0]["params"][0].add_(1.0)
            raise self.error
        return super().step(closure)


@pytest.mark.parametrize("error", [FloatingPointError("overflow"), KeyboardInterrupt()], ids=repr)
def test_a_step_that_raises_is_none_and_its_forward_is_part_of_no_other(
    error: BaseException, watch: Watch
) -> None:
    """What the failing step did to the weight is in the next step's weight."""

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = Failing(model.parameters(), error)
        for step in range(4):
            backward(model, step)
            if step == 1:
                with pytest.raises(type(error)):
                    optimizer.step()
                diary.forget()
            else:
                with diary.update(optimizer):
                    optimizer.step()
        return [optimizer]

    run, diary = play(mlp, loop, watch)
    assert len(diary.entries) == 3
    first, second, third = diary.entries
    check(run, diary)
    pooled = [len(entry.calls["0"]["output_norm"]) for entry in (first, second, third)]
    assert pooled == [1, 1, 1]


# ---------------------------------------------------------------- round other optimizers


class SharpnessAware(Optimizer):
    """Foret et al. 2021: climbs to the worst point nearby, takes the gradient there, steps."""

    def __init__(self, values: Any, base: type[Optimizer], rho: float, **options: Any) -> None:
        super().__init__(values, {"rho": rho})
        self.base = base(self.param_groups, **options)

    @torch.no_grad()
    def climb(self) -> None:
        values = [v for group in self.param_groups for v in group["params"] if v.grad is not None]
        size = torch.stack([value.grad.norm() for value in values]).norm()
        for value in values:
            self.state[value]["before"] = value.clone()
            value.add_(value.grad * (self.param_groups[0]["rho"] / size))

    @torch.no_grad()
    def descend(self) -> None:
        for group in self.param_groups:
            for value in group["params"]:
                if "before" in self.state[value]:
                    value.copy_(self.state[value]["before"])
        self.base.step()

    def step(self, closure: Callable[[], float]) -> None:  # type: ignore[override]
        """The gradient at the start is there already; the closure makes the one up there."""
        self.climb()
        with torch.enable_grad():
            closure()
        self.descend()


@pytest.mark.parametrize("in_one_call", [False, True])
def test_sharpness_aware_steps_are_one_step_each(in_one_call: bool, watch: Watch) -> None:
    """The update is the base optimizer's, the gradient the one it applied, up on the slope."""

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = SharpnessAware(model.parameters(), SGD, rho=0.5, lr=0.1, momentum=0.9)
        for step in range(3):

            def closure(step: int = step) -> float:
                backward(model, step)
                diary.gradients()
                return 0.0

            closure()
            with diary.update(optimizer):
                if in_one_call:
                    optimizer.step(closure)
                else:
                    optimizer.climb()
                    closure()
                    optimizer.descend()
        return [optimizer, optimizer.base]

    run, diary = play(mlp, loop, watch)
    assert [len(entry.calls["2"]["output_norm"]) for entry in diary.entries] == [2, 2, 2]
    for entry in diary.entries:  # the gradient at the start was cleared, and not applied
        for quantities in entry.calls.values():
            quantities.update({name: parts[1:] for name, parts in quantities.items()})
    check(run, diary)
    assert run.series("", "discarded_backwards").values.tolist() == [1, 1, 1]


class Lookahead(Optimizer):
    """Zhang et al. 2019: every second step the weights go half way back to the slow ones."""

    def __init__(self, base: Optimizer) -> None:
        super().__init__([v for g in base.param_groups for v in g["params"]], {})
        self.base, self.n_steps = base, 0
        self.slow = [v.detach().clone() for g in base.param_groups for v in g["params"]]

    def step(self, closure: None = None) -> None:  # type: ignore[override]
        self.base.step()
        self.n_steps += 1
        if self.n_steps % 2 == 0:
            self.synchronise()

    @torch.no_grad()
    def synchronise(self) -> None:
        values = [v for group in self.base.param_groups for v in group["params"]]
        for slow, value in zip(self.slow, values, strict=True):
            slow.lerp_(value, 0.5)
            value.copy_(slow)


@pytest.mark.parametrize("inside", [partial(SGD, lr=0.1), partial(Adam, lr=0.01)])
def test_what_is_done_to_the_weights_behind_the_optimizer_inside_is_part_of_the_step(
    inside: Callable[..., Optimizer], watch: Watch
) -> None:
    """Every second update goes half way back to the slow weights."""
    check(*play(mlp, plain_loop(lambda model: Lookahead(inside(model.parameters()))), watch))


def test_the_state_of_the_optimizer_inside_is_read_with_the_update_of_the_one_around_it(
    watch: Watch,
) -> None:
    model = made(mlp)
    optimizer = Lookahead(Adam(model.parameters(), lr=0.01))

    @nbp.quantity
    def moment(state_exp_avg: Tensor) -> Tensor:
        """Norm of the first moment."""
        return state_exp_avg.norm()

    run = watch(model, probes={"0.weight": [moment, "lr"]})
    wanted = []
    for step in range(3):
        backward(model, step)
        optimizer.step()
        weight = model.get_parameter("0.weight")
        wanted.append(norm_of(optimizer.base.state[weight]["exp_avg"]))
    assert run.series("0.weight", "moment").values.tolist() == pytest.approx(wanted, rel=1e-5)
    assert run.series("0.weight", "lr").values.tolist() == pytest.approx([0.01] * 3)


class Outer(Optimizer):
    """Holds some parameters, and has an optimizer of others step with it, twice."""

    def __init__(self, model: nn.Module) -> None:
        matrices = [value for value in model.parameters() if value.ndim == 2]
        super().__init__(matrices, {})
        self.inner = SGD([value for value in model.parameters() if value.ndim != 2], lr=0.1)

    def step(self, closure: None = None) -> None:  # type: ignore[override]
        self.inner.step()
        with torch.no_grad():
            for value in self.param_groups[0]["params"]:
                value.sub_(0.01 * value.grad.sign())
        self.inner.step()


def test_parameters_that_only_the_optimizer_inside_holds_have_their_whole_change(
    watch: Watch,
) -> None:
    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = Outer(model)
        for step in range(3):
            backward(model, step)
            with diary.update(optimizer, optimizer.inner):
                optimizer.step()
        return [optimizer, optimizer.inner]

    check(*play(mlp, loop, watch))


class Hybrid(Optimizer):
    """Steps matrices by their sign and leaves the rest to another optimizer, before or after."""

    def __init__(self, model: nn.Module, inner_first: bool) -> None:
        matrices = [value for value in model.parameters() if value.ndim == 2]
        rest = [value for value in model.parameters() if value.ndim != 2]
        super().__init__([{"params": matrices}, {"params": rest}], {})
        self.inner, self.inner_first = Adam(rest, lr=0.01), inner_first

    def step(self, closure: None = None) -> None:  # type: ignore[override]
        if self.inner_first:
            self.inner.step()
        with torch.no_grad():
            for value in self.param_groups[0]["params"]:
                value.sub_(0.01 * value.grad.sign())
        if not self.inner_first:
            self.inner.step()


@pytest.mark.parametrize("inner_first", [True, False])
def test_an_optimizer_that_leaves_some_parameters_to_another_has_all_updates(
    inner_first: bool, watch: Watch
) -> None:
    check(*play(mlp, plain_loop(lambda model: Hybrid(model, inner_first)), watch))


class Wrapper(Optimizer):
    """As accelerate's: an Optimizer by class alone, that passes everything on, or skips."""

    def __init__(self, inner: Optimizer) -> None:
        self.inner, self.skips = inner, False

    @property
    def state(self) -> Any:  # type: ignore[override]
        return self.inner.state

    @property
    def param_groups(self) -> Any:  # type: ignore[override]
        return self.inner.param_groups

    def step(self, closure: None = None) -> None:  # type: ignore[override]
        if not self.skips:
            self.inner.step()


def test_a_wrapper_that_skips_steps_while_it_accumulates_makes_none_of_them(watch: Watch) -> None:
    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        inner = Adam(model.parameters(), lr=0.01)
        optimizer = Wrapper(inner)
        for step in range(6):
            if step % 2 == 0:
                model.zero_grad()
            loss_of(model(batch(step))).backward()
            optimizer.skips = step % 2 == 0
            if optimizer.skips:
                optimizer.step()
                continue
            with diary.update(inner):
                optimizer.step()
        return [inner]

    run, diary = play(mlp, loop, watch)
    check(run, diary)
    assert [len(entry.calls["0"]["output_norm"]) for entry in diary.entries] == [2, 2, 2]


SCHEDULERS: dict[str, Callable[[Optimizer], Any]] = {
    "step": lambda optimizer: StepLR(optimizer, 2),
    "one cycle": lambda optimizer: OneCycleLR(optimizer, max_lr=0.1, total_steps=5),
    "plateau": lambda optimizer: ReduceLROnPlateau(optimizer, patience=0),
    "two": lambda optimizer: (StepLR(optimizer, 1), StepLR(optimizer, 2)),
}


@pytest.mark.parametrize("kind", SCHEDULERS)
def test_a_scheduler_that_patches_the_step_changes_nothing(kind: str, watch: Watch) -> None:
    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9)
        made_by = SCHEDULERS[kind](optimizer)
        schedulers: tuple[LRScheduler, ...] = made_by if isinstance(made_by, tuple) else (made_by,)
        for step in range(4):
            backward(model, step)
            with diary.update(optimizer):
                optimizer.step()
            for scheduler in schedulers:
                if isinstance(scheduler, ReduceLROnPlateau):
                    scheduler.step(1.0)
                else:
                    scheduler.step()
        return [optimizer]

    run, diary = play(mlp, loop, watch)
    check(run, diary)
    assert len(diary.entries) == 4
