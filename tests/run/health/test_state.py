"""What a run says it does, when a cell in which it was trained has ended by an error."""

from __future__ import annotations

import pytest
from torch import nn

from notebook_probe.errors import TrainingStopped
from tests.models import made, mlp, sgd, train, train_step
from tests.run.conftest import Watch
from tests.run.loops import batch


def raised(error: BaseException) -> BaseException:
    """As from a loop."""

    def loop() -> None:
        raise error

    try:
        loop()
    except BaseException as caught:
        return caught
    raise AssertionError


@pytest.mark.parametrize("n_steps", [0, 3])
def test_a_cell_that_crashed_while_it_trained_has_failed_until_training_goes_on(
    n_steps: int, watch: Watch, model: nn.Module
) -> None:
    run, optimizer = watch(model, probes=None), sgd(model)
    for step in range(n_steps):
        train_step(model, optimizer, batch(step))
    model(batch(0))  # the step in which it crashed
    run.controls.settle(raised(ValueError("shapes differ")))
    status = run.status()
    assert status.state == "failed"
    assert status.problem.startswith("ValueError: shapes differ (line ")
    assert status.problem.endswith(", in loop)")

    run.controls.settle()
    run.controls.settle(raised(NameError("of a cell that trains nothing")))
    assert run.status().problem == status.problem
    for step in range(2):
        train_step(model, optimizer, batch(step))
    assert (run.status().state, run.status().problem) == ("training", "")
    run.controls.settle()
    assert run.status().state == "idle"


@pytest.mark.parametrize("wanted", [KeyboardInterrupt(), TrainingStopped("stopped before step 1")])
def test_a_loop_that_somebody_ended_has_not_failed(
    wanted: BaseException, watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes=None)
    train_step(model, sgd(model), batch(0))
    run.controls.settle(raised(wanted))
    assert run.status().state == "idle"


def test_the_error_of_a_cell_that_trained_nothing_is_no_matter_of_the_run(
    watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes=None)
    run.controls.settle(raised(NameError("name 'modle' is not defined")))
    assert run.status().state == "waiting"
    train_step(model, sgd(model), batch(0))
    run.controls.settle()
    run.controls.settle(raised(NameError("name 'modle' is not defined")))
    assert run.status().state == "idle"


def test_a_run_is_idle_as_soon_as_its_cell_has_ended(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    train(model, sgd(model), batch, range(3))
    assert run.status().state == "training"
    run.controls.settle()
    assert run.status().state == "idle"
    train(model, sgd(model), batch, range(2))
    assert run.status().state == "training"
