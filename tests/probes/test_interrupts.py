"""Steps that break off, and readings that fail: the record says so and the training goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

import notebook_probe as nbp
from tests.models import floats, loss_of, made, mlp, sgd, train_step
from tests.probes.parameters.optimizer_oracles import Diary, check, play
from tests.probes.watched_loops import Runs, plain_loop
from tests.run.conftest import Watch

batch = floats(5, 4)


# ---------------------------------------------------------------- interrupting


class Interrupted(nn.Module):
    """Breaks off in the middle of a forward when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 2)
        self.error: BaseException | None = None

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x).relu()
        if self.error is not None:
            raise self.error
        return self.second(y)


@pytest.mark.parametrize("error", [ValueError("bad batch"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("moment", ["forward", "backward"])
def test_what_an_interrupt_leaves_half_done_is_no_part_of_the_step_that_is_done(
    error: BaseException, moment: str, watch: Watch
) -> None:
    """Then a validation, which counts for nothing, then training as if nothing had been."""

    def fail(gradient: Tensor) -> None:
        raise error

    def broken_off(model: nn.Module) -> None:
        output = model(batch(77))
        output.register_hook(fail)
        loss_of(output).backward()

    def loop(model: nn.Module, diary: Diary) -> Sequence[Optimizer]:
        assert isinstance(model, Interrupted)
        optimizer = Adam(model.parameters(), lr=0.01)
        for step in range(4):
            if step == 2:
                model.error = error if moment == "forward" else None
                with pytest.raises(type(error)):
                    broken_off(model)
                model.error = None
                diary.forget_calls()
                model.eval()
                with torch.no_grad():
                    model(1e6 * batch(99))
                model.train()
            optimizer.zero_grad()
            loss_of(model(batch(step))).backward()
            with diary.update(optimizer):
                optimizer.step()
        return [optimizer]

    run, diary = play(Interrupted, loop, watch)
    check(run, diary)
    assert len(diary.entries[2].calls["first"]["output_norm"]) == 1


@pytest.mark.parametrize("feature", ["input", "output", "grad_output", "weight", "grad", "update"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_inside_a_quantity_reaches_the_training_loop(
    feature: str, error: type[BaseException], watch: Watch
) -> None:
    """The stop button may be pressed while a probe computes; no probe swallows it."""
    pressed = [True]

    def body(value: Tensor) -> float:
        if pressed.pop() if pressed else False:
            raise error
        return 1.0

    space: dict[str, Any] = {"body": body}
    exec(f"def stopped({feature}): return body({feature})", space)
    model = made(mlp)
    run = watch(model, probes={"0": [space["stopped"], "output_norm"]})
    optimizer = sgd(model)
    with pytest.raises(error):
        train_step(model, optimizer, batch(0))
    for step in range(3):
        train_step(model, optimizer, batch(step))
    assert not run.status().errors
    assert np.isfinite(run.data.stopped.sel(module="0")[1:]).all()


# ---------------------------------------------------------------- failing readings


@pytest.mark.parametrize("feature", ["input", "output", "grad_output", "weight", "grad", "update"])
def test_a_reading_that_always_fails_is_counted_and_given_up_and_training_is_the_same(
    feature: str, watch: Watch
) -> None:
    space: dict[str, Any] = {}
    exec(f"def fails({feature}): raise ZeroDivisionError('each time')", space)
    places = ["0", "2"]
    runs = Runs(watch)

    def begin(model: nn.Module, **options: Any) -> nbp.Run:
        run = runs(model, **options)
        run.attach(places, space["fails"])
        return run

    run, diary = play(mlp, plain_loop(), begin)
    failed = [probe for probe in run.probes() if probe.quantity == "fails"]
    assert [probe.module for probe in failed] == places
    for probe in failed:
        assert (probe.n_values, probe.n_errors, probe.disabled) == (0, 3, True)
        assert probe.error == "ZeroDivisionError: each time"
        assert "disabled" in probe.note
    assert {probe.quantity for probe in run.status().errors} == {"fails"}
    run.detach(places, "fails")
    check(run, diary)
