"""What is due at the last step of a run of which nobody knew the end."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe import Run, watch
from notebook_probe.run.backfill import PastSteps
from tests.run.conftest import Watch

LAST = "include_last(every(10))"


def trained(run: Run, model: nn.Module, n: int) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(n):
        optimizer.zero_grad()
        model(torch.ones(3, 2)).sum().backward()
        optimizer.step()


def weight_norm(model: nn.Linear) -> float:
    return float(model.weight.detach().norm())


@pytest.mark.parametrize("when", [LAST, "times(3) | every(10)"])
def test_the_state_is_read_once_when_the_run_ends(when: str, tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    with watch(model, store=tmp_path / "record", probes=None) as run:
        run.attach("", "weight_norm", when)
        trained(run, model, 25)
    column = nbp.open_run(tmp_path / "record").series("", "weight_norm")
    assert column.step.values.tolist() == [0, 10, 20, 25]
    assert float(column[-1]) == pytest.approx(weight_norm(model), rel=1e-6)


def test_where_the_last_step_is_known_nothing_is_read_beside_it(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    with watch(model, store=tmp_path / "record", probes=None) as run:
        run.attach("", "weight_norm", LAST)
        run.attach("", "output_norm", LAST)
        run.expect(end_step=25)
        trained(run, model, 25)
    opened = nbp.open_run(tmp_path / "record")
    for name in ("weight_norm", "output_norm"):
        assert opened.series("", name).step.values.tolist() == [0, 10, 20, 24]
    assert [event.kind for event in opened.events if event.kind == "missed"] == []


def test_what_was_computed_in_the_last_step_is_said_to_be_lost_once(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    with watch(model, store=tmp_path / "record", probes=None) as run:
        run.attach(["0", "1"], ["output_norm", "grad_norm", "weight_norm"], LAST)
        trained(run, model, 25)
    opened = nbp.open_run(tmp_path / "record")
    missed = [event for event in opened.events if event.kind == "missed"]
    assert [(event.step, event.text) for event in missed] == [
        (
            25,
            "output_norm, grad_norm at 0, 1, include_last(every(10)): the last step was not "
            "known in time; announce it by run.expect(end_step=...)",
        )
    ]
    assert opened.series("0", "weight_norm").step.values.tolist() == [0, 10, 20, 25]
    assert opened.series("0", "output_norm").step.values.tolist() == [0, 10, 20]


def test_a_resumed_training_goes_on_at_the_state_that_was_read(tmp_path: Path) -> None:
    place, model = tmp_path / "record", nn.Linear(2, 1)
    for _ in range(2):
        with watch(model, store=place, probes=None) as run:
            run.attach("", "weight_norm", LAST)
            run.attach("", "output_norm", "every(1)")
            trained(run, model, 15)
    steps = nbp.open_run(place).series("", "weight_norm").step.values.tolist()
    assert steps == [0, 10, 15, 20, 30]


def test_a_stop_before_the_expected_end_is_an_end_too(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    with watch(model, store=tmp_path / "record", probes=None) as run:
        run.attach("", "weight_norm", nbp.Times(2))
        run.expect(end_step=100)
        trained(run, model, 60)
    steps = nbp.open_run(tmp_path / "record").series("", "weight_norm").step
    assert steps.values.tolist() == [49, 60]


@pytest.mark.parametrize("n", [0, 21])
def test_where_nothing_is_owed_nothing_is_read(n: int, watch: Watch) -> None:
    model = nn.Linear(2, 1)
    run = watch(model, probes=None)
    run.attach("", "weight_norm", "every(10) | include_last(every(20))")
    run.attach("", "output_norm", "times(0)")
    trained(run, model, n)
    run.close()
    if n:
        assert run.series("", "weight_norm").step.values.tolist() == [0, 10, 20]
    assert [event for event in run.events if event.kind == "missed"] == []


def test_a_schedule_of_yours_that_raises_keeps_the_run_from_nothing(tmp_path: Path) -> None:
    def early(step: int) -> bool:
        if step > 3:
            raise ValueError("too late")
        return True

    model = nn.Linear(2, 1)
    with watch(model, store=tmp_path / "record", probes=None) as run:
        run.attach("", "weight_norm", nbp.include_last(early))
        run.attach("", "grad_norm", "every(1)")
        run.attach("", "weight_rms", LAST)
        trained(run, model, 5)
    opened = nbp.open_run(tmp_path / "record")
    assert opened.finished
    assert opened.series("", "weight_norm").step.values.tolist() == [0, 1, 2, 3]
    assert opened.series("", "weight_rms").step.values.tolist() == [0, 5]


def test_what_goes_wrong_then_is_said_and_the_run_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = nn.Linear(2, 1)
    with watch(model, store=tmp_path / "record", probes=None) as run:
        run.attach("", "weight_norm", LAST)
        trained(run, model, 5)
        monkeypatch.setattr(PastSteps, "keep", lambda *_: 1 / 0)
    opened = nbp.open_run(tmp_path / "record")
    assert opened.finished
    said = [event.text for event in opened.events if event.kind == "error"]
    assert said == ["the last state was not read: ZeroDivisionError: division by zero"]


def test_of_a_model_that_is_gone_nothing_is_read(tmp_path: Path) -> None:
    model = nn.Linear(2, 1)
    run = watch(model, store=tmp_path / "record", probes=None)
    run.attach("", "weight_norm", LAST)
    trained(run, model, 5)
    del model
    run.close()
    assert run.series("", "weight_norm").step.values.tolist() == [0]
