"""Loss scaling: gradients as they are applied, and steps that an overflow skips."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.amp.grad_scaler import GradScaler
from torch.optim import SGD, Adam, AdamW, Optimizer

from tests.models import floats, made, mlp
from tests.probes.parameters.optimizer_oracles import Diary, check, play
from tests.run.conftest import Watch

batch = floats(5, 4)

Make = Callable[[nn.Module], Optimizer]

MAKERS: dict[str, Make] = {
    "sgd": lambda model: SGD(model.parameters(), lr=0.1, momentum=0.9),
    "adam": lambda model: Adam(model.parameters(), lr=0.01),
    "fused sgd": lambda model: SGD(model.parameters(), lr=0.1, momentum=0.9, fused=True),
    "fused adamw": lambda model: AdamW(model.parameters(), lr=0.01, fused=True),
}
UNFUSED = ["sgd", "adam"]
FUSED = ["fused sgd", "fused adamw"]


def scaled_backward(model: nn.Module, scaler: GradScaler, given: Tensor) -> None:
    with torch.autocast("cpu", torch.float16):
        output = model(given)
    scaler.scale((output.float() - 0.3).square().mean()).backward()


@pytest.mark.parametrize("clip", [None, 0.05])
@pytest.mark.parametrize("kind", MAKERS)
def test_a_gradient_is_recorded_without_the_loss_scale(
    kind: str, clip: float | None, watch: Watch
) -> None:
    """A fused optimizer divides inside its kernel: before it the gradient is a thousandfold.

    After the step every gradient lies there unscaled: that is the oracle.
    """

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer, scaler = MAKERS[kind](model), GradScaler("cpu", init_scale=1024.0)
        for step in range(4):
            optimizer.zero_grad()
            scaled_backward(model, scaler, batch(step))
            if clip is not None:
                scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            with diary.update(optimizer):
                scaler.step(optimizer)
                diary.gradients()
            scaler.update(256.0 if step == 1 else None)
        return [optimizer]

    run, diary = play(mlp, loop, watch)
    check(run, diary)
    weights = run.data.grad_norm.sel(module=["0.weight", "0.bias", "2.weight", "2.bias"])
    total = np.sqrt((weights**2).sum("module"))
    assert (total < (10 if clip is None else clip * 1.001)).all()


@pytest.mark.parametrize("kind", MAKERS)
def test_an_own_quantity_is_given_the_unscaled_gradient_too(kind: str, watch: Watch) -> None:
    def along(weight: Tensor, grad: Tensor) -> Tensor:
        return (weight.double() * grad.double()).sum()

    model = made(mlp)
    run = watch(model, probes={"0.weight": [along]})
    optimizer, scaler = MAKERS[kind](model), GradScaler("cpu", init_scale=1024.0)
    scaled_backward(model, scaler, batch(0))
    weight = model.get_parameter("0.weight")
    before = weight.detach().double().numpy().copy()
    scaler.step(optimizer)
    assert weight.grad is not None
    wanted = (before * weight.grad.double().numpy()).sum()
    assert float(run.series("0.weight", "along")[0]) == pytest.approx(wanted, rel=1e-5)


def overflowing(make: Make) -> Callable[[nn.Module, Diary], Sequence[Optimizer]]:
    """The second of four batches is infinite; ``scaler.step`` decides what comes of it."""

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        optimizer, scaler = make(model), GradScaler("cpu", init_scale=1024.0)
        for step in range(4):
            optimizer.zero_grad()
            given = batch(step)
            given[0, 0] = torch.inf if step == 1 else given[0, 0]
            scaled_backward(model, scaler, given)
            before, n_known = scaler.get_scale(), len(diary.entries)
            with diary.update(optimizer):
                scaler.step(optimizer)
                diary.gradients()
            scaler.update()
            if scaler.get_scale() < before:
                diary.entries[n_known].owned = set()  # nothing was applied
        return [optimizer]

    return loop


@pytest.mark.parametrize("kind", UNFUSED)
def test_an_overflow_that_skips_the_step_makes_no_row_and_leaves_no_trace_in_the_next(
    kind: str, watch: Watch
) -> None:
    run, diary = play(mlp, overflowing(MAKERS[kind]), watch)
    skipped = diary.entries.pop(1)
    assert not np.isfinite(skipped.calls["0"]["output_norm"][0]).all()
    check(run, diary)
    assert np.isfinite(run.data.grad_norm.sel(module="0.weight")).all()
    assert np.isfinite(run.data.output_norm.sel(module="0")).all()
    assert run.series("", "discarded_backwards").values.tolist() == [1]
    assert run.series("", "discarded_backwards").step.values.tolist() == [1]


@pytest.mark.parametrize("kind", FUSED)
def test_a_fused_step_that_an_overflow_skipped_is_marked(kind: str, watch: Watch) -> None:
    """Its hooks fire as usual; only ``found_inf`` knows. Nothing was changed, nothing applied."""
    run, diary = play(mlp, overflowing(MAKERS[kind]), watch)
    skipped = diary.entries[1]
    for name, weight in skipped.before.items():
        np.testing.assert_array_equal(weight, skipped.after[name])
    assert run.series("", "skipped").values.tolist() == [0.0, 1.0, 0.0, 0.0]
    skipped.owned = set(skipped.before)
    for entry in diary.entries[1:2]:
        entry.gradients = {name: np.full_like(g, np.nan) for name, g in entry.gradients.items()}
    data, expected = run.data.load(), diary.expected()
    for name in skipped.before:
        for quantity in ("weight_norm", "update_ratio"):
            wanted = list(expected[name, quantity].values())
            np.testing.assert_allclose(data[quantity].sel(module=name), wanted, rtol=1e-5)
        found = data.grad_norm.sel(module=name).values
        wanted = [expected[name, "grad_norm"][step] for step in (0, 2, 3)]
        np.testing.assert_allclose(found[[0, 2, 3]], wanted, rtol=1e-5)
        assert not np.isfinite(found[1])


def test_a_training_without_a_scaler_has_no_skipped_steps(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    optimizer = MAKERS["fused adamw"](model)
    model(batch(0)).square().mean().backward()
    optimizer.step()
    assert "skipped" not in run.data or not run.data.skipped.notnull().any()
