"""Numbers that are logged at the top of a loop, before the forward of the step that they are of."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest
from torch import nn

import notebook_probe as nbp
from tests.models import floats, loss_of, sgd, train_step
from tests.run.conftest import Watch

batch = floats(5, 4)
N = 5

Log = Callable[[nbp.Run, str, int], None]


def scalar(run: nbp.Run, name: str, step: int) -> None:
    run.log({name: step})


def array(run: nbp.Run, name: str, step: int) -> None:
    run.log_array(name, np.array([float(step)]))


def values(run: nbp.Run, name: str) -> dict[int, float]:
    series = run.series("", name).dropna("step")
    return dict(zip(series.step.values.tolist(), series.values.ravel().tolist(), strict=True))


@pytest.mark.parametrize("log", [scalar, array])
def test_what_is_logged_before_each_forward_is_of_the_step_to_come(
    log: Log, model: nn.Module, watch: Watch
) -> None:
    """And what is logged after each update of the one that is over."""
    run, optimizer = watch(model), sgd(model)
    for step in range(N):
        log(run, "at_top", step)
        train_step(model, optimizer, batch(step))
        log(run, "at_end", step)
    whole = {step: float(step) for step in range(N)}
    assert values(run, "at_top") == whole
    assert values(run, "at_end") == whole


def test_of_two_values_after_an_update_the_second_is_of_the_step_to_come(
    model: nn.Module, watch: Watch
) -> None:
    """A rate that is logged by a callback at the end and by the loop at the top, say."""
    run, optimizer = watch(model), sgd(model)
    train_step(model, optimizer, batch(0))
    run.log(rate=0.5)
    run.log(rate=0.25)
    train_step(model, optimizer, batch(1))
    assert values(run, "rate") == {0: 0.5, 1: 0.25}


def test_what_two_optimizers_log_after_their_updates_of_one_step_is_of_that_step(
    model: nn.Module, watch: Watch
) -> None:
    """The later replaces the other, and a warning says so."""
    run = watch(model)
    both = sgd(model.get_submodule("0")), sgd(model.get_submodule("2"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for step in range(3):
            model.zero_grad()
            loss_of(model(batch(step))).backward()
            for place, optimizer in enumerate(both):
                optimizer.step()
                run.log(loss=10 * step + place)
    assert [one.category for one in caught] == [nbp.ReplacedWarning]
    assert values(run, "loss") == {0: 1.0, 1: 11.0, 2: 21.0}


def test_a_value_before_any_step_does_not_move_those_of_another_name(
    model: nn.Module, watch: Watch
) -> None:
    run, optimizer = watch(model), sgd(model)
    run.log(seed=7)
    for step in range(3):
        train_step(model, optimizer, batch(step))
        run.log(loss=step)
    assert values(run, "seed") == {0: 7.0}
    assert values(run, "loss") == {0: 0.0, 1: 1.0, 2: 2.0}


def test_a_second_value_after_the_last_update_is_kept(model: nn.Module, watch: Watch) -> None:
    run, optimizer = watch(model), sgd(model)
    train_step(model, optimizer, batch(0))
    run.log(rate=0.5)
    run.log(rate=0.25)
    run.close()
    assert values(run, "rate") == {0: 0.5, 1: 0.25}
