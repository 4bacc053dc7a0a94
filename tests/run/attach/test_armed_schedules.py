"""Schedules that need to know of the run, and those that keep time, in a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe import Run, watch
from notebook_probe.errors import ScheduleError
from notebook_probe.record import open_record
from notebook_probe.schedules import Steps
from tests.run.conftest import Watch

Train = Callable[[int], None]


def trained(run: Run, model: nn.Module, n: int, before: Callable[[int], Any] = id) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(n):
        before(step)
        optimizer.zero_grad()
        model(torch.ones(3, 2)).sum().backward()
        optimizer.step()
    run.controls.settle()


def steps_of(run: Any, quantity: str = "weight_norm") -> list[int]:
    return run.series("", quantity).step.values.tolist()


@pytest.mark.slow
def test_times_are_split_over_what_the_run_is_told_to_expect(watch: Watch) -> None:
    model = nn.Linear(2, 1)
    run = watch(model, probes=None)
    run.attach("", "weight_norm", "times(4)")
    run.expect(end_step=20)
    trained(run, model, 20)
    assert steps_of(run) == [4, 9, 14, 19]


def test_what_is_learnt_while_it_trains_counts_from_the_next_step_on(watch: Watch) -> None:
    model = nn.Linear(2, 1)
    run = watch(model, probes=None)
    run.attach("", "weight_norm", nbp.Times(6))
    trained(run, model, 200, lambda step: run.expect(end_step=200) if step == 150 else None)
    assert steps_of(run) == [127, 166, 199]


def test_the_status_tells_the_first_value_of_what_the_run_expects(watch: Watch) -> None:
    model = nn.Linear(2, 1)
    run = watch(model, probes=None)
    run.attach("", "weight_norm", "times(4)")
    trained(run, model, 1)
    assert run.probes()[0].note == "first value at step 127"
    run.expect(end_step=20)
    trained(run, model, 1)
    assert run.probes()[0].note == "first value at step 4"
    assert run.probes()[0].schedule == "times(4)"


def test_a_second_training_is_split_anew(watch: Watch) -> None:
    model = nn.Linear(2, 1)
    run = watch(model, probes=None)
    run.attach("", "weight_norm", "times(2)")
    for start in (0, 10):
        run.expect(start_step=start, end_step=start + 10)
        trained(run, model, 10)
    assert steps_of(run) == [4, 9, 14, 19]


def test_first_and_last_steps_are_those_of_the_run(watch: Watch) -> None:
    model = nn.Linear(2, 1)
    run = watch(model, probes=None)
    run.attach("", "weight_norm", nbp.include_first(nbp.include_last("every(10, 5)")))
    run.expect(end_step=24)
    trained(run, model, 24)
    assert steps_of(run) == [0, 5, 15, 23]


def test_of_a_late_attach_the_first_step_is_that_of_the_attach(watch: Watch) -> None:
    model = nn.Linear(2, 1)
    run = watch(model, probes=None)
    when = nbp.include_first(nbp.Every(10))
    trained(run, model, 25, lambda step: run.attach("", "weight_norm", when) if step == 7 else None)
    assert steps_of(run) == [7, 10, 20]


@pytest.mark.slow
def test_a_resumed_run_has_the_rest_of_the_list(tmp_path: Path) -> None:
    model, found = nn.Linear(2, 1), []
    for n in (140, 160):
        with watch(model, store=tmp_path / "record", probes=None) as run:
            run.attach("", "weight_norm", "times(9) | geometric(10, 1.5)")
            trained(run, model, n)
            found = steps_of(run)
    left = 140  # the state in which the first one ended, as nobody knew its last step
    assert found == [10, 25, 48, 83, 127, 136, left, 216, 255]


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("quantity", ["weight_norm", "clip_coefficient"])
def test_seconds_pass_by_the_clock_that_is_given(quantity: str, watch: Watch) -> None:
    """What is raw is asked for ahead of time, as the optimizer steps."""
    model, clock = nn.Linear(2, 1), Clock()
    run = watch(model, probes=None)
    run.attach("", quantity, nbp.Seconds(10, clock))

    def tick(step: int) -> None:
        clock.now += 3

    trained(run, model, 20, tick)
    found = steps_of(run, quantity)
    assert found[0] in (4, 5)
    assert np.diff(found).tolist() == [5] * (len(found) - 1)  # from when the next step begins


def test_probes_that_are_attached_together_share_a_clock_and_runs_do_not(watch: Watch) -> None:
    clock = Clock()
    when = nbp.Seconds(5, clock)
    models = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1)), nn.Linear(2, 1)
    runs = [watch(model, probes=None) for model in models]
    runs[0].attach(["0", "1"], "output_norm", when)
    runs[1].attach("", "weight_norm", when)

    def tick(step: int) -> None:
        clock.now += 2

    trained(runs[0], models[0], 9, tick)
    trained(runs[1], models[1], 9, tick)
    first = [runs[0].series(place, "output_norm").step.values.tolist() for place in "01"]
    assert first == [[3, 7]] * 2
    assert steps_of(runs[1]) == [3, 7]


def test_the_budget_measures_one_of_so_many_due_steps_of_any_schedule(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, when = nn.Linear(2, 1), nbp.Geometric(2, 1.3)
    run = watch(model, probes=None)
    run.attach("", "weight_norm", when)
    probe = run._parts.probes.wanted[0]
    probe.may_stretch = True
    budget = run._parts.observer.training._budget
    budget.factors = {"weight_norm": 2}
    monkeypatch.setattr(budget, "buy", lambda step: range(0))  # no event measures a step whole
    trained(run, model, 60)
    assert steps_of(run) == [step for step in range(60) if when(step)][::2]


def test_the_same_schedule_as_text_and_as_value_is_attached_once(watch: Watch) -> None:
    model = nn.Linear(2, 1)
    run = watch(model, probes=None)
    run.attach("", "weight_norm", "times(4) | seconds(100)")
    run.attach("", "weight_norm", nbp.Times(4) | nbp.Seconds(100))
    handle = run.attach("", "weight_norm", nbp.Times(5))
    assert [probe.schedule for probe in run.probes()] == ["times(4) | seconds(100)", "times(5)"]
    handle.remove()
    assert [probe.schedule for probe in run.probes()] == ["times(4) | seconds(100)"]


@pytest.mark.parametrize("wrong", [(-1, 5), (5, 3), (0, -2), (True, 5), (0, 2.5), ("0", 1)])
def test_what_cannot_be_expected_is_refused_with_what_was_given(wrong: Any, watch: Watch) -> None:
    run = watch(nn.Linear(2, 1), probes=None)
    with pytest.raises(ScheduleError, match=r"^expect[(: ]+(start|end)_step=") as error:
        run.expect(start_step=wrong[0], end_step=wrong[1])
    assert any(f"_step={value!r}" in str(error.value) for value in wrong)


def test_a_record_whose_streams_were_called_by_a_hash_is_read_and_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So streams of `Steps` were once called."""
    place, model = tmp_path / "record", nn.Linear(2, 1)
    with monkeypatch.context() as before, watch(model, store=place, probes=None) as run:
        before.setattr(Steps, "stream", "steps_0badcafe")
        run.attach("", "weight_norm", Steps({0, 2, 6}))
        trained(run, model, 3)
    assert steps_of(open_record(place)) == [0, 2]
    with watch(model, store=place, probes=None) as run:
        run.attach("", "weight_norm", Steps({0, 2, 6}))
        trained(run, model, 5)
    assert steps_of(open_record(place)) == [0, 2, 6]
    assert {"steps_0badcafe", Steps({0, 2, 6}).stream} <= {*open_record(place).streams}
