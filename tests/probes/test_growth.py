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
from tests.probes.optimizer_oracles import MODULE, PARAMETER, Diary, check, play
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
        assert steps_with(run, name, "update_ratio") == [0, 1, 2]


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
    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer = Adam(model.parameters(), lr=0.01)
        for step in range(3):
            optimizer.zero_grad()
            loss_of(model(batch(step))).backward()
            with diary.update(optimizer):
                optimizer.step()
        return [optimizer]

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


def one_more(model: nn.Module, diary: Diary) -> None:
    torch.manual_seed(3)
    layer = nn.Linear(2, 3)
    model.register_module("3", layer)
    diary.hook("3", layer)


def test_a_module_that_is_added_where_only_others_were_named_is_not_recorded(watch: Watch) -> None:
    def begin(model: nn.Module, **options: object) -> nbp.Run:
        return watch(model, probes={"2": MODULE})

    run, _ = play(mlp, changed_after(2, one_more), begin)  # type: ignore[arg-type]
    assert "3" not in run.data.module
