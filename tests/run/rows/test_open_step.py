"""What a run gives back: data, cube, tree, series, status, also of the step that is still open."""

from __future__ import annotations

import math
import re
import threading
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from torch import Tensor

import notebook_probe as nbp
from notebook_probe.errors import UnknownNameError
from notebook_probe.record.format.missing import measured
from notebook_probe.run.attach.presets import DEFAULT
from notebook_probe.run.attach.requests import Control
from tests.models import CASES, floats, loss_of, made, mlp, sgd, train, train_step
from tests.run.conftest import Watch
from tests.run.loops import PATIENCE_S

batch = floats(5, 4)


def test_data_has_the_dims_coords_and_units_of_a_dataset(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes={"*": ["output_norm", "weight_norm"]})
    train(model, sgd(model), batch, range(3))
    data = run.data
    assert dict(data.sizes) == {"module": 3, "step": 3}
    assert data.output_norm.dims == ("module", "step")
    assert data.module.values.tolist() == ["0", "1", "2"]
    assert data.step.values.tolist() == [0, 1, 2]
    assert data.time.dims == ("step",)
    assert np.issubdtype(data.time.dtype, np.datetime64)
    assert data.output_norm.dtype == np.float32
    assert data.output_norm.attrs["units"] == "1"
    assert "||y||_2" in data.output_norm.attrs["long_name"]


def test_cube_stacks_the_quantities(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    train(model, sgd(model), batch, range(2))
    cube = run.to_xarray("cube")
    assert cube.dims == ("module", "quantity", "step")
    assert cube.quantity.values.tolist() == list(run.data.data_vars)
    for quantity in ("weight_norm", "zero_fraction"):
        np.testing.assert_array_equal(cube.sel(quantity=quantity), run.data[quantity])


def test_tree_keeps_every_schedules_own_steps(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes={"0": ["output_norm", ["weight_norm", "every(3, 1)"]]})
    train(model, sgd(model), batch, range(6))
    tree = run.to_xarray("tree")
    assert tree["every_1"].step.values.tolist() == [0, 1, 2, 3, 4, 5]
    assert tree["every_3_1"].step.values.tolist() == [1, 4]
    assert tree["every_3_1"].weight_norm.dims == ("step", "module")


def test_series_holds_the_measured_steps_only(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes={"0": ["output_norm", ["weight_norm", 2]]})
    train(model, sgd(model), batch, range(5))
    series = run.series("0", "weight_norm")
    assert series.dims == ("step",)
    assert series.step.values.tolist() == [0, 2, 4]
    column = run.data.weight_norm.sel(module="0")
    assert np.isnan(column.values[[1, 3]]).all()
    np.testing.assert_array_equal(column.values[::2], series)


def test_an_unknown_series_lists_the_close_ones(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes={"0": ["output_norm"]})
    train_step(model, sgd(model), batch(0))
    with pytest.raises(UnknownNameError, match="close: 'output_norm'"):
        run.series("0", "outptu_norm")
    with pytest.raises(UnknownNameError, match="module '7'"):
        run.series("7", "output_norm")


def test_the_open_step_is_part_of_the_answer_once_its_optimizer_has_stepped(watch: Watch) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model)
    loss_of(model(batch(0))).backward()
    assert run.data.sizes["step"] == 0
    optimizer.step()
    assert run.data.step.values.tolist() == [0]
    early = run.data.load()
    train_step(model, optimizer, batch(1))
    assert run.data.step.values.tolist() == [0, 1]
    xr.testing.assert_identical(run.data.isel(step=[0]).load(), early)


def test_reading_the_open_step_changes_no_later_value(watch: Watch) -> None:
    often, never = made(mlp), made(mlp)
    runs = watch(often), watch(never)
    optimizers = sgd(often), sgd(never)
    for step in range(4):
        for model, optimizer in zip((often, never), optimizers, strict=True):
            loss_of(model(batch(step))).backward()
            optimizer.step()
            if model is often:
                run = runs[0]
                run.data.load()
                run.to_xarray("cube").load()
                run.status()
    read, unread = (run.data.drop_vars("time").load() for run in runs)
    read, unread = (data.drop_attrs(deep=False) for data in (read, unread))  # the run_id differs
    xr.testing.assert_identical(read, unread)


def test_a_failing_quantity_is_counted_once_however_often_it_is_read(watch: Watch) -> None:
    @nbp.quantity(name="test_unread")
    def unread(output_sumsq: object) -> float:
        """Raises every time."""
        raise ValueError("no")

    model = made(mlp)
    run = watch(model, probes={"0": [unread]})
    train_step(model, sgd(model), batch(0))
    for _ in range(5):
        run.data.load()
    run.controls.settle()
    (probe,) = run.probes()
    assert probe.n_errors == 1
    assert not probe.disabled


def test_a_measured_nan_is_told_from_a_gap(watch: Watch) -> None:
    @nbp.quantity(name="test_nan")
    def nan(output: Tensor) -> float:
        """NaN."""
        return math.nan

    model = made(mlp)
    run = watch(model, probes={"0": [[nan, 2], "output_norm"]})
    train(model, sgd(model), batch, range(4))
    assert run.series("0", "test_nan").step.values.tolist() == [0, 2]
    values = run.data.test_nan.sel(module="0").values
    assert np.isnan(values).all()
    assert measured(values).tolist() == [True, False, True, False]


def test_data_is_what_plain_xarray_reads_after_close(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    optimizer = sgd(model)
    for step in range(5):
        train_step(model, optimizer, batch(step))
        run.log(loss=step / 2)
    mine = run.data.load()
    run.close()
    stored = xr.open_zarr(run.location, group="scalars/every_1", chunks=None).load()
    assert {*DEFAULT, "loss"} <= {*stored.data_vars} <= {*mine.data_vars}
    for quantity in stored.data_vars:
        np.testing.assert_array_equal(stored[quantity].T.sel(module=mine.module), mine[quantity])
    xr.testing.assert_equal(run.data.load(), mine)
    xr.testing.assert_equal(nbp.open_run(run.location).data.load(), mine)


def test_reading_before_anything_was_recorded_gives_empty_answers(watch: Watch) -> None:
    run = watch(made(mlp), probes=None)
    assert run.data.sizes["step"] == 0
    assert run.to_xarray("cube").shape == (0, 0, 0)
    assert list(run.to_xarray("tree").children) == []
    with pytest.raises(UnknownNameError, match="known: none"):
        run.series("0", "weight_norm")


# ---------------------------------------------------------------- run.log


def test_scalars_lie_at_the_root_on_the_step_they_were_logged_in(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    optimizer = sgd(model)
    losses = []
    for step in range(4):
        losses.append(train_step(model, optimizer, batch(step)))
        run.log(loss=torch.tensor(losses[-1], requires_grad=True), epoch=step // 2)
    np.testing.assert_allclose(run.series("", "loss"), losses, rtol=1e-6)
    assert run.series("(root)", "epoch").values.tolist() == [0, 0, 1, 1]
    assert run.data.loss.attrs["long_name"] == "logged by the training loop"


def test_the_last_value_of_a_name_in_a_step_stands(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.log(loss=1.0)
    with pytest.warns(nbp.ReplacedWarning, match="step 0 has a value of this name already"):
        run.log(loss=2.0, other=np.float32(3.0), third=np.array([4]))
    train_step(model, sgd(model), batch(0))
    assert run.data.isel(module=0, step=0).to_array().values.tolist() == [2.0, 3.0, 4.0]


def test_a_new_scalar_may_come_in_any_step(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    optimizer = sgd(model)
    for step in range(4):
        train_step(model, optimizer, batch(step))
        scalars: dict[str, Any] = {f"scalar_{step}": step}
        run.log(**scalars)
    run.controls.settle()
    assert run.status().problem == ""
    for step in range(4):
        assert run.series("", f"scalar_{step}").step.values.tolist() == [step]
    assert np.isfinite(run.data.weight_norm.sel(module="0")).all()


@pytest.mark.parametrize(
    ("value", "given"),
    [
        (torch.ones(3), r"a tensor of shape \(3,\)"),
        (torch.tensor(1j), r"a tensor of shape \(\) and torch.complex64"),
        ("0.5", "str '0.5'"),
        (None, "NoneType None"),
        ([1.0], r"list \[1.0\]"),
        (np.ones(2), "ndarray"),
        (1j, "complex 1j"),
    ],
)
def test_what_is_no_number_is_refused_where_it_is_logged(
    value: object, given: str, watch: Watch
) -> None:
    run = watch(made(mlp), probes=None)
    with pytest.raises(nbp.QuantityError, match=rf"log\(loss=...\): {given}.*one real number"):
        run.log(loss=value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name", ["step", "time", "module", "two\nlines", "", "x" * 201, "half a letter \ud800"]
)
def test_a_name_that_cannot_be_kept_is_refused_where_it_is_logged(name: str, watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    optimizer = sgd(model)
    train_step(model, optimizer, batch(0))
    with pytest.raises(nbp.QuantityError, match=re.escape(repr(name)[:80])):
        run.log({name: 1.0})
    train_step(model, optimizer, batch(1))
    assert run.status().problem == ""
    assert len(run.series("0", "weight_norm")) == 2, "the rows of the step are not lost"


def test_names_that_differ_by_case_only_are_two(watch: Watch) -> None:
    run = watch(made(mlp), probes=None)
    run.log(loss=1.0)
    run.log(Loss=2.0)
    run.close()
    kept = nbp.open_run(run.location)
    assert [kept.series("", name).item() for name in ("loss", "Loss")] == [1.0, 2.0]


def test_what_is_logged_between_two_cells_is_shown_and_kept(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    train(model, sgd(model), batch, range(3))
    run.controls.settle()
    run.log(test_accuracy=0.75)
    assert run.series("", "test_accuracy").step.values.tolist() == [3], "3 updates were made"
    run.close()
    kept = nbp.open_run(run.location)
    assert kept.series("", "test_accuracy").values.tolist() == [0.75]
    assert len(kept.series("0", "weight_norm")) == 3


def test_what_is_logged_before_the_first_step_is_kept(watch: Watch) -> None:
    run = watch(made(mlp))
    run.log(learning_rate=0.5)
    run.close()
    assert nbp.open_run(run.location).series("", "learning_rate").values.tolist() == [0.5]


def test_half_a_step_leaves_what_was_logged_and_no_half_readings(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    train_step(model, sgd(model), batch(0))
    model(batch(1))
    run.log(loss=1.0)
    assert run.data.step.values.tolist() == [0, 1]
    assert np.isnan(run.data.output_norm.sel(step=1)).all()
    run.close()
    kept = nbp.open_run(run.location)
    assert kept.series("0", "output_norm").step.values.tolist() == [0]
    assert kept.series("", "loss").step.values.tolist() == [1]


# ---------------------------------------------------------------- status


def test_status_follows_the_life_of_a_run(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, name="first")
    status = run.status()
    assert (status.name, status.state, status.step) == ("first", "waiting", 0)
    assert status.location == run.location
    assert status.n_probes == len(run.probes()) == 11 + 7 + 11
    assert math.isnan(status.steps_per_second)
    optimizer = sgd(model)
    for step in range(3):
        train_step(model, optimizer, batch(step))
        run.log(loss=step)
    status = run.status()
    assert (status.state, status.step, status.dropped_rows) == ("training", 3, 0)
    assert status.steps_per_second > 0
    assert 0 < status.cost_percent <= 100
    assert status.scalars == {"loss": 1.0}, "of the last closed step"
    run.flush()
    assert run.status().nbytes > 0
    assert run.status().flushed_age_s >= 0
    run.close()
    assert run.status().state == "finished"
    assert run.status().scalars == {"loss": 2.0}
    assert run.finished


def test_probes_say_what_became_of_them(watch: Watch) -> None:
    model = made(CASES["dict"].build)
    lonely = torch.nn.Linear(4, 4)
    model.add_module("lonely", lonely)
    run = watch(model, probes={"body": ["output_norm", ["weight_norm", "every(5, 2)"]]})
    run.attach("lonely", ["output_norm", "weight_norm", "grad_norm"])
    optimizer = sgd(model)
    for step in range(2):
        train_step(model, optimizer, batch(step))
    run.controls.settle()
    notes = {(probe.module, probe.quantity): probe.note for probe in run.probes()}
    assert notes == {
        ("body", "output_norm"): "",
        ("body", "weight_norm"): "first value at step 2",
        ("lonely", "output_norm"): "not called by any training forward yet",
        ("lonely", "weight_norm"): "",
        ("lonely", "grad_norm"): "no optimizer step with a gradient here yet",
    }
    first = run.probes()[0]
    assert (first.n_values, first.last_step, first.schedule) == (2, 1, "every(1)")


def test_a_probe_whose_gradient_never_comes_says_so(watch: Watch) -> None:
    model = made(mlp).requires_grad_(False)
    model.get_submodule("2").requires_grad_(True)
    run = watch(model, probes={"0": ["output_grad_norm"]})
    train_step(model, sgd(model), batch(0))
    run.controls.settle()
    assert run.probes()[0].note == "called, but its output requires no gradient"


def test_revision_grows_with_what_can_be_read(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    optimizer = sgd(model)
    seen = [run.revision]
    for step in range(3):
        train_step(model, optimizer, batch(step))
        run.controls.settle()
        seen.append(run.revision)
    assert seen == sorted(set(seen))


@pytest.mark.slow
def test_data_can_be_read_from_another_thread_while_training_runs(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes={"*": ["output_norm"]})
    optimizer = sgd(model)
    stopping = threading.Event()

    def loop() -> None:
        step = 0
        while not stopping.is_set():
            train_step(model, optimizer, batch(step))
            run.log(loss=step)
            step += 1

    training = run.train_in_background(loop)
    try:
        for _ in range(60):
            steps = run.data.step.values
            assert (np.diff(steps) == 1).all(), "every step once, in order"
            run.series("0", "output_norm") if len(steps) else None
            run.status()
    finally:
        stopping.set()
    training.wait(PATIENCE_S)
    assert run.status().problem == ""
    assert run.controls.put(Control("pause")).state == "queued"
