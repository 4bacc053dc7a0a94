"""Models that are not finished when watching begins, and models that change while they train."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer

import notebook_probe as nbp
from tests.models import floats, loss_of, made, mlp
from tests.probes.parameters.optimizer_oracles import (
    MODULE,
    PARAMETER,
    Diary,
    check,
    play,
    steps_of,
)
from tests.run.conftest import Watch

batch = floats(5, 4)


def steps_with(run: nbp.Run, module: str, quantity: str) -> list[int]:
    return run.series(module, quantity).step.values.tolist()


# ---------------------------------------------------------------- lazy


class LazyConvNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.LazyConv1d(3, 2)
        self.norm = nn.LazyBatchNorm1d()
        self.head = nn.LazyLinear(2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(self.conv(x[:, None])).flatten(1))


LAZY: dict[str, Callable[[], nn.Module]] = {
    "linear": lambda: nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.LazyLinear(2)),
    "convolution": LazyConvNet,
}


@pytest.mark.parametrize("kind", LAZY)
def test_lazy_modules_are_recorded_from_their_first_step(kind: str, watch: Watch) -> None:
    """Attached while they have no shape; no parameter is read before the first step has one."""

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer: Optimizer | None = None
        for step in range(3):
            output = model(batch(step))
            optimizer = optimizer or Adam(model.parameters(), lr=0.01)
            optimizer.zero_grad()
            loss_of(output).backward()
            with diary.update(optimizer):
                optimizer.step()
        assert optimizer is not None
        return [optimizer]

    run, diary = play(LAZY[kind], loop, watch)
    check(run, diary)
    assert not run.status().errors
    for name in diary.entries[0].before:
        nonzero = [step for step in range(3) if diary.entries[step].before[name].any()]
        assert steps_with(run, name, "update_ratio") == nonzero


def test_a_lazy_model_may_be_run_without_gradients_first(watch: Watch) -> None:
    """As one does to give it its shapes before the optimizer is made."""

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        with torch.no_grad():
            model(batch(9))
        optimizer = SGD(model.parameters(), lr=0.1)
        for step in range(2):
            optimizer.zero_grad()
            loss_of(model(batch(step))).backward()
            with diary.update(optimizer):
                optimizer.step()
        return [optimizer]

    check(*play(LAZY["linear"], loop, watch))


# ---------------------------------------------------------------- entries of lists


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scales = nn.ParameterList([nn.Parameter(torch.full((4,), 0.5 + i)) for i in range(2)])
        self.shifts = nn.ParameterDict({"left": nn.Parameter(torch.ones(4))})
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        for scale in self.scales:
            x = x * scale
        return self.head(x + self.shifts["left"])


def test_entries_of_parameter_lists_and_dicts_are_recorded_by_name(watch: Watch) -> None:
    loop = steps_of(lambda model: Adam(model.parameters(), lr=0.01), batch)
    run, diary = play(Scaled, loop, watch)
    check(run, diary)
    for name in ("scales.0", "scales.1", "shifts.left"):
        assert steps_with(run, name, "update_ratio") == [0, 1, 2]


def test_an_entry_that_is_appended_can_be_attached_from_then_on(watch: Watch) -> None:
    model = made(Scaled)
    run = watch(model, probes={"scales.1": ["weight_norm"]})
    wanted = []
    for step in range(4):
        if step == 2:
            model.scales.append(nn.Parameter(torch.full((4,), 3.0)))
            run.attach("scales.2", PARAMETER)
        optimizer = SGD(model.parameters(), lr=0.1)
        optimizer.zero_grad()
        loss_of(model(batch(step))).backward()
        if step >= 2:
            value = model.get_parameter("scales.2").detach().double().numpy()
            wanted.append(float(np.linalg.norm(value)))
        optimizer.step()
    assert steps_with(run, "scales.1", "weight_norm") == [0, 1, 2, 3]
    assert steps_with(run, "scales.2", "update_ratio") == [2, 3]
    np.testing.assert_allclose(run.series("scales.2", "weight_norm"), wanted, rtol=1e-6)
    assert wanted[0] == 6.0


# ---------------------------------------------------------------- replaced, added, removed


def changed_after(step_of_change: int, change: Callable[[nn.Module, Diary], None]) -> object:
    """Five steps; before the forward of one of them the model changes, and so its optimizer."""

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = SGD(model.parameters(), lr=0.1)
        for step in range(5):
            if step == step_of_change:
                change(model, diary)
                optimizer = SGD(model.parameters(), lr=0.1)
            optimizer.zero_grad()
            loss_of(model(batch(step))).backward()
            with diary.update(optimizer):
                optimizer.step()
        return [optimizer]

    return loop


def new_head(model: nn.Module, diary: Diary) -> None:
    """Another shape, another kind of layer, as one does for fine-tuning."""
    torch.manual_seed(3)
    head = nn.Linear(8, 5)
    model.register_module("2", head)
    diary.hook("2", head)


def test_a_module_that_is_replaced_keeps_its_series(watch: Watch) -> None:
    run, diary = play(mlp, changed_after(2, new_head), watch)  # type: ignore[arg-type]
    check(run, diary)
    for place, quantity in (("2", "output_norm"), ("2", "output_grad_norm"),
                            ("2.weight", "update_ratio")):  # fmt: skip
        assert steps_with(run, place, quantity) == [0, 1, 2, 3, 4]


class LowRank(nn.Module):
    """A frozen layer with a small trained one beside it, put in its place."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Linear(base.in_features, 2, bias=False)
        self.up = nn.Linear(2, base.out_features, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.up(self.down(x))


def low_rank(model: nn.Module, diary: Diary) -> None:
    torch.manual_seed(3)
    base = model.get_submodule("0")
    assert isinstance(base, nn.Linear)
    adapted = LowRank(base)
    model.register_module("0", adapted)
    diary.hook("0", adapted)
    for name in ("down", "up"):
        diary.hook(f"0.{name}", adapted.get_submodule(name))


def test_a_layer_put_into_another_is_followed_by_its_name(watch: Watch) -> None:
    """Another module stands there now; the old hooks of the layer inside do not speak for it."""

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        return changed_after(2, low_rank)(model, diary)  # type: ignore[operator]

    alone, watched = made(mlp), made(mlp)
    torch.manual_seed(7)
    outputs: list[float] = []
    gradients: list[float] = []
    losses_of(alone, loop, outputs, gradients)
    run = watch(watched, probes={"0": ["output_norm", "grad_norm"]})
    torch.manual_seed(7)
    loop(watched, Diary(watched, alone=False))
    np.testing.assert_allclose(run.series("0", "output_norm"), outputs, rtol=1e-5)
    np.testing.assert_allclose(run.series("0", "grad_norm"), gradients, rtol=1e-5)
    assert all(map(torch.equal, alone.parameters(), watched.parameters()))


def losses_of(
    model: nn.Module,
    loop: Callable[[nn.Module, Diary], Sequence[Optimizer]],
    outputs: list[float],
    gradients: list[float],
) -> None:
    """Train; keep what the activation behind "0" is given, and the gradients below "0"."""

    def keep(module: nn.Module, given: tuple[Tensor, ...]) -> None:
        outputs.append(float(np.linalg.norm(given[0].detach().double().numpy())))

    class Told(Diary):
        def gradients(self) -> None:
            super().gradients()
            total = sum(
                float(value.grad.double().square().sum())
                for value in model.get_submodule("0").parameters()
                if value.grad is not None and value.requires_grad
            )
            gradients.append(float(np.sqrt(total)))

    model.get_submodule("1").register_forward_pre_hook(keep)
    loop(model, Told(model, alone=False))


def one_more(model: nn.Module, diary: Diary) -> None:
    torch.manual_seed(3)
    layer = nn.Linear(2, 3)
    model.register_module("3", layer)
    diary.hook("3", layer)


@pytest.mark.parametrize("probes", [{"*": MODULE}, {nn.Linear: MODULE}, "default"], ids=str)
def test_a_module_that_is_added_is_recorded_where_the_selection_means_it(
    probes: object, watch: Watch
) -> None:
    """From the next step on, for a glob, a class and the default probes."""

    def begin(model: nn.Module, **options: object) -> nbp.Run:
        return watch(model, probes=probes)

    run, diary = play(mlp, changed_after(2, one_more), begin)  # type: ignore[arg-type]
    expected = diary.expected()
    for place in ("0", "2", "3"):
        for quantity in ("output_norm", "output_grad_norm"):
            wanted = expected[place, quantity]
            assert steps_with(run, place, quantity) == list(wanted)
            np.testing.assert_allclose(
                run.series(place, quantity), list(wanted.values()), rtol=1e-5
            )
    assert list(expected["3", "output_norm"]) == [2, 3, 4]


def test_a_module_that_is_added_where_only_others_were_named_is_not_recorded(watch: Watch) -> None:
    def begin(model: nn.Module, **options: object) -> nbp.Run:
        return watch(model, probes={"2": MODULE})

    run, _ = play(mlp, changed_after(2, one_more), begin)  # type: ignore[arg-type]
    assert "3" not in run.data.module


def no_activation(model: nn.Module, diary: Diary) -> None:
    assert isinstance(model, nn.Sequential)
    del model[1]
    diary.hook("1", model.get_submodule("1"))


def test_names_that_move_up_when_a_module_is_removed_are_followed(watch: Watch) -> None:
    """Sequential renames what comes behind: "1" was the activation and is now the head."""
    run, diary = play(mlp, changed_after(2, no_activation), watch)  # type: ignore[arg-type]
    expected = diary.expected()
    data = run.data.load()
    head_before = [expected["2", "output_norm"][step] for step in (0, 1)]
    head_after = [expected["1", "output_norm"][step] for step in (2, 3, 4)]
    np.testing.assert_allclose(data.output_norm.sel(module="2")[:2], head_before, rtol=1e-5)
    assert np.isnan(data.output_norm.sel(module="2")[2:]).all()
    np.testing.assert_allclose(data.output_norm.sel(module="1")[2:], head_after, rtol=1e-5)
    assert not run.status().problem


def test_a_module_that_is_removed_and_put_back_goes_on(watch: Watch) -> None:
    class Optional_(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Linear(4, 4)
            self.extra: nn.Module | None = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            y = self.body(x)
            return self.extra(y) if self.extra is not None else y

    model = made(Optional_)
    run = watch(model, probes={"extra": ["output_norm"], "extra.weight": ["weight_norm"]})
    extra = model.extra
    for step in range(6):
        model.extra = None if step in (2, 3) else extra
        optimizer = SGD(model.parameters(), lr=0.1)
        loss_of(model(batch(step))).backward()
        optimizer.step()
    for place, quantity in (("extra", "output_norm"), ("extra.weight", "weight_norm")):
        assert steps_with(run, place, quantity) == [0, 1, 4, 5]
    assert not run.status().errors


def test_old_modules_are_left_without_hooks_when_they_are_replaced(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes={"2": MODULE})
    old = model.get_submodule("2")
    optimizer = SGD(model.parameters(), lr=0.1)
    loss_of(model(batch(0))).backward()
    optimizer.step()
    model.register_module("2", nn.Linear(8, 2))
    for step in (1, 2):
        loss_of(model(batch(step))).backward()
        SGD(model.parameters(), lr=0.1).step()
    assert not old._forward_hooks
    assert not old._forward_pre_hooks
    run.close()
    assert not model.get_submodule("2")._forward_hooks
