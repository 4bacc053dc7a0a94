"""The last steps in memory, in the record once something has happened, each at its own step."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.errors import RecordWriteError
from notebook_probe.probes.step.measured import POOLED, Columns, MeasuredStep, StreamValues
from notebook_probe.run.breakpoints import check
from notebook_probe.run.flight.ring import Ring
from notebook_probe.run.flight.schedule import IN_MEMORY
from tests.models import floats, made, mlp, sgd, train_step
from tests.run.conftest import Watch
from tests.run.loops import PATIENCE_S

batch = floats(5, 4)


def go(run: nbp.Run, model: nn.Module, steps: range, loss: float = 1.0) -> None:
    optimizer = sgd(model)
    for step in steps:
        run.boundary()
        train_step(model, optimizer, batch(step))
        run.log(loss=loss)
    run.boundary()


def written(run: nbp.Run) -> list[dict[str, Any]]:
    return [json.loads(event.detail) for event in run.events if event.kind == "flight"]


def steps_of(run: nbp.Run, quantity: str = "grad_norm", module: str = "0") -> list[int]:
    if quantity not in run.data:
        return []
    series = run.data[quantity].sel(module=module).dropna("step")
    found: list[int] = series.step.values.tolist()
    return found


def test_nothing_is_written_as_long_as_nothing_happens(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None, flight=10)
    go(run, model, range(30))
    assert steps_of(run) == []
    assert written(run) == []
    run.close()
    assert set(nbp.open_run(run.location).data.data_vars) == {"loss"}


@pytest.mark.slow
def test_when_asked_to_it_writes_the_last_steps_as_a_twin_records_them(watch: Watch) -> None:
    model, twin = made(mlp), made(mlp)
    run, whole = watch(model, probes=None, flight=10), watch(twin)
    go(run, model, range(30))
    go(whole, twin, range(30))
    assert run.flight is not None
    assert run.flight.write("a look") == 10
    assert steps_of(run) == [*range(20, 30)]
    for name in ("grad_norm", "update_ratio", "output_std", "weight_norm"):
        ours = run.data[name].sel(module="0", step=slice(20, 29)).values
        theirs = whole.data[name].sel(module="0", step=slice(20, 29)).values
        np.testing.assert_array_equal(ours, theirs)
    (told,) = written(run)
    assert (told["why"], told["first_step"], told["last_step"]) == ("a look", 20, 29)
    assert run.flight.write() == 0, "what was written is not written again"
    run.close()
    assert steps_of(nbp.open_run(run.location)) == [*range(20, 30)]  # type: ignore[arg-type]


def test_a_rule_that_fires_writes_what_was_before_and_some_that_follows(
    watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes=None, flight=8)
    go(run, model, range(20))
    go(run, model, range(20, 21), loss=math.inf)
    assert run.alerts.of("nonfinite_loss")
    go(run, model, range(21, 40))
    run.controls.settle()
    told = written(run)
    first = told[0]
    assert "step 20" in first["why"]
    last = first["last_step"]
    assert last in (20, 21), "at once, or where the loop passes next"
    assert first["first_step"] == last - 7
    after = [one for one in told[1:] if one["last_step"] >= last + 8 // 4]
    assert after, "some of what follows is written, too"
    assert all(one["first_step"] > last for one in told[1:])
    assert {*range(last - 7, last + 1)} < {*steps_of(run)}


def test_nan_in_what_only_the_flight_recorder_measures_writes_it(
    watch: Watch, model: nn.Module
) -> None:
    run = watch(model, probes=None, flight=8)
    go(run, model, range(12))
    with torch.no_grad():
        model[0].weight[0, 0] = math.nan  # type: ignore[index]
    go(run, model, range(12, 14))
    run.controls.settle()
    (told, *_) = written(run)
    assert "nan" in told["why"]
    assert "at step 12" in told["why"]
    assert 12 in steps_of(run, "nonfinite_fraction")
    assert run.data["nonfinite_fraction"].sel(module="0", step=12) > 0


def test_an_exception_of_the_loop_writes_it(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None, flight=8)

    def loop() -> None:
        go(run, model, range(12))
        raise RuntimeError("out of luck")

    with pytest.raises(RuntimeError):
        run.train_in_background(loop).wait(PATIENCE_S)
    (told,) = written(run)
    assert told["why"] == "the loop raised RuntimeError: out of luck"
    assert steps_of(run) == [*range(4, 12)]


def test_what_the_record_has_of_a_step_is_not_doubled(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes={"0": [["grad_norm", "every(5)"]]}, flight=10)
    go(run, model, range(20))
    before = run.series("0", "grad_norm")
    assert run.flight is not None
    run.flight.write()
    assert steps_of(run) == [0, 5, *range(10, 20)]
    late = [view for view in run.streams.values() if view.name.startswith(("late", "early"))]
    rows = {
        step: row
        for view in late
        for step, row in zip(
            view.steps().tolist(), view.values("grad_norm", modules=["0"])[:, 0], strict=True
        )
    }
    assert np.isnan(rows[10])
    assert np.isnan(rows[15])
    assert np.isfinite(rows[11])
    after = run.series("0", "grad_norm").sel(step=before.step)
    np.testing.assert_array_equal(after.values, before.values)


def test_the_memory_is_bounded_and_shown(watch: Watch, model: nn.Module) -> None:
    run = watch(model, probes=None, flight=10)
    assert run.flight is not None
    go(run, model, range(15))
    run.controls.settle()
    size = run.flight.nbytes
    go(run, model, range(15, 60))
    run.controls.settle()
    assert run.flight.nbytes == size
    assert run.status().flight.startswith("flight recorder: 10 of 10 steps of ")
    assert "flight recorder: 10 of 10" in repr(run.status())
    assert watch(made(mlp)).flight is None


def test_a_breakpoint_sees_every_step_of_it(
    watch: Watch, model: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "how_to_resume", str)  # nobody could, so that it goes on
    run = watch(model, probes=None, flight=10)
    run.pause_when("0", "grad_norm", "> -1", for_rows=3)
    go(run, model, range(5))
    (event,) = [event for event in run.events if event.kind == "pause"]
    assert event.step == 2


def test_weights_are_the_same_with_and_without(watch: Watch) -> None:
    weights = []
    for options in ({}, {"flight": 5}):
        model = made(mlp)
        run = watch(model, probes=None, **options)
        go(run, model, range(12))
        if run.flight is not None:
            run.flight.write()
        weights.append([value.detach().clone() for value in model.parameters()])
    assert all(torch.equal(*pair) for pair in zip(*weights, strict=True))


def test_what_could_not_be_written_is_kept_for_the_next_time(
    watch: Watch, model: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = watch(model, probes=None, flight=10)
    go(run, model, range(20))
    assert run.flight is not None
    backfill = type(run._parts.writer.out_of_order)

    def full(*arguments: object) -> None:
        raise RecordWriteError("no space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(backfill, "write", full)
        with pytest.raises(RecordWriteError, match="no space left"):
            run.flight.write()
    go(run, model, range(3))
    assert run.flight.write() == 10
    assert steps_of(run) == [*range(13, 23)]


@pytest.mark.parametrize("flight", [-1, 2.5, True, "200"])
def test_what_is_no_number_of_steps_is_refused(flight: Any, watch: Watch, model: nn.Module) -> None:
    with pytest.raises(ValueError, match="a number of steps"):
        watch(model, flight=flight)


def test_a_write_that_failed_is_made_up_for_a_few_steps_later(
    watch: Watch, model: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = watch(model, probes=None, flight=20)
    assert run.flight is not None
    go(run, model, range(8))
    backfill = type(run._parts.writer.out_of_order)

    def full(*arguments: object) -> None:
        raise RecordWriteError("no space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(backfill, "write", full)
        run.flight.happened("a fault")
        go(run, model, range(1))
    failed = [event.text for event in run.events if event.kind == "error"]
    assert len(failed) == 1
    assert "no space left" in failed[0]
    assert written(run) == []
    go(run, model, range(5))
    run.controls.settle()
    told = written(run)
    assert [one["why"] for one in told] == ["after: a fault"]
    assert (told[0]["first_step"], told[0]["n_steps"]) == (0, told[0]["last_step"] + 1)
    assert steps_of(run) == [*range(told[0]["last_step"] + 1)]


def of_step(step: int) -> MeasuredStep:
    columns = Columns(IN_MEMORY, None, (("grad_norm", "0"),))
    values = StreamValues(columns, [(0, POOLED)], [float(step)], is_whole=True)
    return MeasuredStep(step, 0, [values], {}, {})


@pytest.mark.parametrize("back_to", [0, 3, 5])
def test_rows_of_steps_that_are_trained_again_are_forgotten(back_to: int) -> None:
    ring = Ring(10)
    for step in range(6):
        ring.keep(of_step(step))
    for step in (back_to, back_to + 1):
        ring.keep(of_step(step))
    assert [row.step for row in ring.take()] == [back_to, back_to + 1]


@pytest.mark.parametrize(("n_steps", "first"), [(5, 1), (10, 0)])
def test_rows_that_are_put_back_come_before_those_that_have_come_since(
    n_steps: int, first: int
) -> None:
    ring = Ring(n_steps)
    for step in range(4):
        ring.keep(of_step(step))
    taken = ring.take()
    for step in (4, 5):
        ring.keep(of_step(step))
    ring.put_back(taken)
    assert [row.step for row in ring.take()] == [*range(first, 6)], "once each, and the oldest go"
    assert len(ring) == 0
