"""A quantity of several steps has one schedule at a place; another needs another name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from torch import nn

import notebook_probe as nbp
from notebook_probe.run.attach.requests import Attach
from tests.models import floats, made, mlp, sgd, train
from tests.run.conftest import Watch

batch = floats(5, 4)


class StepsSeen:
    """Steps since the last due one."""

    n = 0

    def reset(self) -> None:
        self.n = 0

    def update(self, output_sumsq: Any) -> None:
        self.n += 1

    def compute(self) -> int:
        return self.n


steps_seen = nbp.window_quantity(StepsSeen, name="test_steps_seen")
dues_seen = nbp.window_quantity(StepsSeen, name="test_dues_seen", samples="due")
calls_seen = nbp.window_quantity(StepsSeen, name="test_calls_seen", samples="step")


@pytest.mark.parametrize("quantity", [steps_seen, dues_seen])
def test_a_second_schedule_of_its_windows_is_refused(
    quantity: nbp.Quantity, model: nn.Module, watch: Watch
) -> None:
    run = watch(model, probes=None)
    run.attach("*", quantity, "every(2)")
    before = run.probes()
    with pytest.raises(
        nbp.ScheduleError, match=rf"{quantity.name} on every\(3\) at 1, where .* every\(2\).*name="
    ):
        run.attach("1", quantity, "every(3)")
    assert run.probes() == before
    ticket = run.controls.put(Attach(("1",), quantity.name, "every(3)"))
    train(model, sgd(model), batch, range(5))
    assert (ticket.state, ticket.text.count("every(2)")) == ("refused", 1)
    assert run.series("1", quantity.name).step.values.tolist() == [0, 2, 4]


def test_two_schedules_in_one_request_are_refused_before_a_record_is_made(
    model: nn.Module, tmp_path: Path
) -> None:
    probes = {"1": [["test_steps_seen", 2]], "*": [["test_steps_seen", 3]]}
    with pytest.raises(nbp.ScheduleError, match="measured on every"):
        nbp.watch(model, store=tmp_path / "run.zarr", probes=probes)
    assert not (tmp_path / "run.zarr").exists()


def test_under_a_name_of_its_own_both_follow_their_schedules(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes={"1": [["test_steps_seen", 2]]})
    kind: Any = nbp.list_quantities()["test_steps_seen"].function
    nbp.window_quantity(kind, name="test_steps_seen_2")
    run.attach("1", "test_steps_seen_2", 3)
    train(model, sgd(model), batch, range(7))
    assert run.series("1", "test_steps_seen").values.tolist() == [1, 2, 2, 2]
    assert run.series("1", "test_steps_seen_2").values.tolist() == [1, 3, 3]


def test_after_detaching_the_first_the_second_is_attached(watch: Watch) -> None:
    run = watch(made(mlp), probes={"1": [["test_steps_seen", 2]]})
    run.detach("1", "test_steps_seen")
    run.attach("1", "test_steps_seen", 3)
    assert [probe.schedule for probe in run.probes()] == ["every(3)"]


def test_a_window_of_one_step_and_another_place_may_have_two_schedules(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes={"0": [["test_steps_seen", 2]]})
    run.attach("1", ["test_steps_seen", "test_calls_seen"], 3)
    run.attach("1", "test_calls_seen", 2)
    train(model, sgd(model), batch, range(5))
    assert run.series("1", "test_calls_seen").step.values.tolist() == [0, 2, 3, 4]
