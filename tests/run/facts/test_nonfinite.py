"""Origin of a loss that is NaN: the module, the batch, an update or the loss, at its own step."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim import SGD

import notebook_probe as nbp
from tests.run.facts.trained import nothing, small

NAN_AT = 7
Found = list[tuple[str, int, tuple[str, ...]]]


class Counts(nn.Module):
    """Returns NaN in one of its training calls, which it counts in a plain attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.n = nn.Linear(8, 8), 0

    def forward(self, x: Tensor) -> Tensor:
        self.n += 1
        x = self.linear(x)
        return x / 0.0 * 0.0 if self.n == NAN_AT + 1 else x


class Draws(nn.Module):
    """Returns NaN where it draws a small number."""

    def forward(self, x: Tensor) -> Tensor:
        return x / (torch.rand(()) > 0.1).float() * 1.0


def watched(
    folder: Path,
    model: nn.Module,
    *,
    loss: Callable[[Any, Tensor], Tensor] = lambda out, x: out.square().mean(),
    batch: Callable[[int], Tensor] = lambda step: torch.rand(16, 8),
    call: Callable[[nn.Module, Tensor], Any] = lambda model, x: model(x),
    before_backward: Callable[[Tensor, int], None] = lambda x, step: None,
    n_steps: int = 12,
    before_update: Callable[[int], None] = nothing,
) -> Found:
    """Train with nothing measured, and return alerts and remarks."""
    optimizer = SGD(model.parameters(), lr=0.01)
    torch.manual_seed(1)
    with nbp.watch(model, store=folder / "a.zarr", probes=[]) as run:
        for step in range(n_steps):
            x = batch(step)
            found = loss(call(model, x), x)
            optimizer.zero_grad()
            before_backward(x, step)
            found.backward()
            before_update(step)
            optimizer.step()
    return [(one.rule, one.step, one.modules) for one in (*run.alerts, *run.remarks)]


def origins(found: Found) -> Found:
    return [one for one in found if one[0].startswith("nonfinite")]


def test_a_module_that_returns_nan_is_named_at_its_step_though_nothing_is_measured(
    tmp_path: Path,
) -> None:
    model = nn.Sequential(nn.Linear(8, 8), Counts(), nn.Linear(8, 2))
    assert origins(watched(tmp_path, model)) == [("nonfinite_output", NAN_AT, ("1",))]


def test_a_call_that_draws_numbers_draws_the_same_ones_again(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), Draws(), nn.Linear(8, 2))
    generator = torch.Generator().manual_seed(5)
    found = origins(
        watched(
            tmp_path,
            model,
            batch=lambda step: torch.rand(16, 8, generator=generator),
            n_steps=60,
        )
    )
    assert [(rule, modules) for rule, _, modules in found] == [("nonfinite_output", ("2",))]


def test_a_call_that_draws_numbers_unlike_the_first_ones_is_said_not_to_be_located(
    tmp_path: Path,
) -> None:
    class DrawsLate(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.n_calls = 0

        def forward(self, x: Tensor) -> Tensor:
            self.n_calls += 1
            return x + torch.rand(1) * torch.nan if self.n_calls > NAN_AT else x

    model = nn.Sequential(nn.Linear(8, 8), DrawsLate(), nn.Linear(8, 2))
    assert origins(watched(tmp_path, model))[0][:2] == ("nonfinite_not_located", NAN_AT)


def test_a_batch_with_nan_is_named_and_no_module(tmp_path: Path) -> None:
    def batch(step: int) -> Tensor:
        x = torch.rand(16, 8)
        x[3, 2] = torch.nan if step == NAN_AT else 0.5
        return x

    assert origins(watched(tmp_path, small(), batch=batch)) == [
        ("nonfinite_batch", NAN_AT, ("(root)",))
    ]


def test_a_mask_of_minus_infinity_is_no_bad_batch(tmp_path: Path) -> None:
    model = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    mask = torch.full((4, 4), -torch.inf).triu(1)
    found = watched(
        tmp_path,
        model,
        batch=lambda step: torch.rand(2, 4, 8),
        call=lambda model, x: model(x, src_mask=mask),
        loss=lambda out, x: out.square().mean() * (torch.nan if x[0, 0, 0] > 0.9 else 1.0),
        n_steps=40,
    )
    assert {rule for rule, *_ in origins(found)} == {"nonfinite_from_loss"}


def test_a_loss_that_makes_the_nan_itself_is_named(tmp_path: Path) -> None:
    count = iter(range(100))

    def loss(out: Tensor, x: Tensor) -> Tensor:
        return (out - out if next(count) == NAN_AT else out).square().mean().log()

    assert origins(watched(tmp_path, small(), loss=loss))[0] == (
        "nonfinite_from_loss",
        NAN_AT,
        ("(root)",),
    )


def spoils(*parameters: Tensor) -> Callable[[int], None]:
    """Return a function that fills gradients with NaN before the update of one step."""

    def spoil(step: int) -> None:
        for one in parameters:
            if step == NAN_AT - 1 and one.grad is not None:
                one.grad.fill_(torch.nan)

    return spoil


def test_the_last_layer_that_an_update_made_nan_is_named_with_the_step_after(
    tmp_path: Path,
) -> None:
    layers = [nn.Linear(8, 8) for _ in range(4)]
    model, spoil = nn.Sequential(*layers), spoils(layers[0].weight, layers[1].weight)
    assert origins(watched(tmp_path, model, before_update=spoil)) == [
        ("nonfinite_update", NAN_AT, ("1",))
    ]


def test_weights_that_are_nan_everywhere_are_told_of_the_whole_model(tmp_path: Path) -> None:
    model = small()
    found = watched(tmp_path, model, before_update=spoils(*model.parameters()))
    assert origins(found) == [("nonfinite_update", NAN_AT, ("(root)",))]


def test_weights_that_are_nan_before_the_first_step_are_no_update(tmp_path: Path) -> None:
    model = small()
    with torch.no_grad():
        for value in model.parameters():
            value.fill_(torch.nan)
    assert origins(watched(tmp_path, model)) == [("nonfinite_output", 0, ("0",))]


def test_inputs_that_were_changed_in_place_are_not_replayed(tmp_path: Path) -> None:
    class Doubled(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 2  # which keeps no x for its backward

    model = nn.Sequential(Doubled(), Counts(), nn.Linear(8, 2))

    def spoil(x: Tensor, step: int) -> None:
        x.zero_()

    found = watched(tmp_path, model, before_backward=spoil)
    assert origins(found)[0] == ("nonfinite_not_located", NAN_AT, ("(root)",))


def test_of_several_forwards_of_a_step_the_one_with_the_nan_is_found(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(8, 8), Counts(), nn.Linear(8, 2))
    found = watched(tmp_path, model, call=lambda model, x: model(x) + model(x + 1) + model(x - 1))
    assert origins(found) == [("nonfinite_output", NAN_AT // 3, ("1",))]


def test_of_micro_batches_the_one_with_the_nan_is_found(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(8, 8), Counts(), nn.Linear(8, 2))

    def call(model: nn.Module, x: Tensor) -> Tensor:
        model(x).square().mean().backward()
        return model(x + 1)

    found = origins(watched(tmp_path, model, call=call))
    assert found == [("nonfinite_output", NAN_AT // 2, ("1",))]


def test_keywords_and_containers_are_called_again_as_they_were(tmp_path: Path) -> None:
    class Takes(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Counts()

        def forward(self, *, batch: dict[str, Tensor]) -> dict[str, Tensor]:
            return {"out": self.inner(batch["x"])}

    found = watched(
        tmp_path,
        Takes(),
        call=lambda model, x: model(batch={"x": x}),
        loss=lambda out, x: out["out"].square().mean(),
    )
    assert origins(found) == [("nonfinite_output", NAN_AT, ("inner",))]


def test_half_precision_overflows_again_under_autocast(tmp_path: Path) -> None:
    large = nn.Linear(8, 8)
    with torch.no_grad():
        large.weight.fill_(3e4)
    model = nn.Sequential(nn.Linear(8, 8), large, nn.Linear(8, 2))

    def call(model: nn.Module, x: Tensor) -> Any:
        with torch.autocast("cpu", dtype=torch.float16):
            return model(x * 10)

    found = watched(tmp_path, model, call=call, loss=lambda out, x: out.float().mean(), n_steps=1)
    assert origins(found) == [("nonfinite_output", 0, ("1",))]


def test_a_model_that_cannot_be_called_again_is_said_to_be(tmp_path: Path) -> None:
    class Once(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = Counts()

        def forward(self, x: Tensor) -> Tensor:
            left.pop()
            result: Tensor = self.inner(x)
            return result

    left = [*range(NAN_AT + 1)]
    found = watched(tmp_path, Once(), n_steps=NAN_AT + 1)
    assert origins(found) == [("nonfinite_not_located", NAN_AT, ("(root)",))]


def test_a_loss_whose_update_is_left_out_is_told_nothing(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(8, 8), Counts(), nn.Linear(8, 2))

    def leave_out(step: int) -> None:
        for one in model.parameters():
            if one.grad is not None and not one.grad.isfinite().all():
                one.grad.zero_()

    assert origins(watched(tmp_path, model, before_update=leave_out)) == []


def test_of_two_optimizers_the_first_may_have_finite_gradients(tmp_path: Path) -> None:
    class Cut(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x / 0.0 * 0.0 if x.shape[0] == 3 else x

    body, head = nn.Linear(8, 8), nn.Linear(8, 2, bias=False)
    model = nn.Sequential(body, Cut(), head)
    optimizers = SGD(head.parameters(), lr=0.01), SGD(body.parameters(), lr=0.01)
    with nbp.watch(model, store=tmp_path / "a.zarr", probes=[]) as run:
        for step in range(NAN_AT + 2):
            loss = model(torch.rand(3 if step == NAN_AT else 16, 8)).square().mean()
            loss.backward()
            if head.weight.grad is not None:
                head.weight.grad.nan_to_num_()
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad()
    assert origins([(one.rule, one.step, one.modules) for one in run.alerts]) == [
        ("nonfinite_output", NAN_AT, ("1",))
    ]


def test_a_scaler_that_looks_for_its_scale_is_told_nothing(tmp_path: Path) -> None:
    model, scaler = small(), torch.amp.GradScaler("cpu", init_scale=2.0**125)
    optimizer = SGD(model.parameters(), lr=0.01)
    with nbp.watch(model, store=tmp_path / "a.zarr", probes=[]) as run:
        for _ in range(40):
            optimizer.zero_grad()
            loss = 1000 * model(torch.rand(16, 8)).square().mean()
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
    assert scaler.get_scale() < 2.0**125
    assert origins([(one.rule, one.step, one.modules) for one in run.alerts]) == []


@pytest.mark.parametrize("make", [small, lambda: nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5))])
def test_a_training_that_stays_finite_is_told_nothing(
    make: Callable[[], nn.Module], tmp_path: Path
) -> None:
    assert origins(watched(tmp_path, make())) == []


def test_a_training_that_turns_to_nan_is_the_same_with_and_without_watching(
    tmp_path: Path,
) -> None:
    def trained(is_watched: bool) -> list[Any]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8), nn.Dropout(0.2), Counts())
        optimizer = SGD(model.parameters(), lr=0.01, momentum=0.9)
        run = nbp.watch(model, store=tmp_path / "b.zarr", probes=[]) if is_watched else None
        drawn = []
        for _ in range(NAN_AT + 3):
            optimizer.zero_grad()
            x = torch.rand(16, 8)
            F.mse_loss(model(x), x).backward()
            drawn.append(float(torch.rand(())))
            optimizer.step()
        if run is not None:
            run.close()
            assert origins([(one.rule, one.step, one.modules) for one in run.alerts])
        return [*model.state_dict().values(), torch.tensor(drawn), torch.tensor(model[3].n)]

    for one, other in zip(trained(True), trained(False), strict=True):
        assert torch.equal(one.nan_to_num(-1), other.nan_to_num(-1))


def test_a_batch_is_held_no_longer_than_until_its_backward(tmp_path: Path) -> None:
    model = small()
    optimizer = SGD(model.parameters(), lr=0.01)
    with nbp.watch(model, store=tmp_path / "a.zarr", probes=[]):
        for _ in range(3):
            x = torch.rand(16, 8)
            held = weakref.ref(x)
            loss = model(x).square().mean()
            del x
            loss.backward()
            del loss
            gc.collect()
            assert held() is None
            optimizer.step()


def test_calls_without_a_backward_hold_one_batch_at_most(tmp_path: Path) -> None:
    model = small()
    held = []
    with nbp.watch(model, store=tmp_path / "a.zarr", probes=[]):
        for _ in range(100):
            x = torch.rand(16, 8)
            held.append(weakref.ref(x))
            model(x)
        del x
        assert sum(one() is not None for one in held) <= 1
    gc.collect()
    assert all(one() is None for one in held)


def test_of_an_earlier_forward_whose_inputs_are_gone_the_origin_is_unknown(tmp_path: Path) -> None:
    class Positive(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.detach() * 2.0  # which keeps no x

    model = nn.Sequential(Positive(), Counts(), nn.Linear(8, 2))
    found = watched(tmp_path, model, call=lambda model, x: model(x + 1) + model(x))
    assert origins(found) == [("nonfinite_not_located", NAN_AT // 2, ("(root)",))]


def test_the_loss_that_is_nan_is_told_as_a_consequence(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(8, 8), Counts(), nn.Linear(8, 2))
    optimizer = SGD(model.parameters(), lr=0.01)
    with nbp.watch(model, store=tmp_path / "a.zarr") as run:
        for _ in range(NAN_AT + 3):
            optimizer.zero_grad()
            loss = model(torch.rand(16, 8)).square().mean()
            loss.backward()
            optimizer.step()
            run.log(loss=loss.item())
    [cause] = run.alerts.causes
    assert cause.alert.rule == "nonfinite_output"
    assert cause.modules[0] == "1"
    assert "nonfinite_loss" in {one.alert.rule for one in cause.below}
