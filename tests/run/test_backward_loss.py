"""A loss that nobody logs, in the record and wherever a loss is looked for."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

import notebook_probe as nbp
from notebook_probe.explorer.draw.view import fresh_selection
from notebook_probe.lineage.progress import loss_of as loss_of_run
from notebook_probe.lineage.progress import scalar_of
from notebook_probe.record.format.loss_names import BACKWARD_LOSS
from notebook_probe.record.format.schema import FROM_BACKWARD
from tests.models import floats, loss_of, made, mlp, sgd, train_step
from tests.probes.reading.on_accelerator import loss_on, never_by_itself
from tests.run.accelerator import Accelerator, copies, host, moved, on_device, waits
from tests.run.breakpoints.trainings import go_on
from tests.run.conftest import Watch
from tests.run.loops import held_at

batch = floats(5, 4)
READS_IT = {"": ["loss_ema", "loss_spike_score", "train_eval_gap"]}


def test_a_bare_run_has_the_loss_of_every_step_and_says_where_from(watch: Watch) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model)
    losses = [train_step(model, optimizer, batch(step)) for step in range(100)]
    series = run.series("", BACKWARD_LOSS)
    assert series.values.tolist() == pytest.approx(losses), "that of the open step, too"
    run.controls.settle()
    assert run.series("", BACKWARD_LOSS).values.tolist() == pytest.approx(losses)
    assert run.data[BACKWARD_LOSS].attrs["long_name"] == FROM_BACKWARD
    run.close()
    opened = nbp.open_run(run.location)
    assert opened.series("", BACKWARD_LOSS).values.tolist() == pytest.approx(losses)
    assert opened.data[BACKWARD_LOSS].attrs["long_name"] == FROM_BACKWARD


def test_rules_find_a_loss_that_is_nan_or_jumps(watch: Watch) -> None:
    model = made(mlp)
    optimizer = sgd(model, lr=0.0)
    run = watch(model, optimizer)
    run.attach("", "loss_spike_score")
    factors = [1.0 + 0.01 * (step % 3) for step in range(20)] + [50.0, 100.0, math.nan]
    for factor in factors:
        optimizer.zero_grad()
        (loss_of(model(batch(0))) * factor).backward()
        optimizer.step()
    run.controls.settle()
    found = {alert.rule: alert for alert in run.alerts}
    assert {"diverging_loss", "nonfinite_loss", "loss_spike"} <= set(found)
    assert found["nonfinite_loss"].quantities == (BACKWARD_LOSS,)
    assert (found["nonfinite_loss"].step, found["diverging_loss"].step) == (22, 21)


def test_a_training_is_held_by_it(watch: Watch) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model, optimizer)
    run.pause_when("", BACKWARD_LOSS, "> 1000")

    def train() -> None:
        for factor in (1.0, 1e6, 1.0):
            optimizer.zero_grad()
            (loss_of(model(batch(0))) * factor).backward()
            optimizer.step()

    background = run.train_in_background(train)
    assert held_at(run) == 2
    assert BACKWARD_LOSS in run.status().pause_reason
    go_on(run, lambda: not background.running)


@pytest.mark.parametrize("name", ["loss", "train_loss"])
@pytest.mark.parametrize("before", [False, True])
def test_a_loss_that_is_logged_now_and_then_ends_nothing(
    watch: Watch, name: str, before: bool
) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model, optimizer, probes=READS_IT)
    losses = []
    for step in range(9):
        optimizer.zero_grad()
        loss = loss_of(model(batch(step)))
        loss.backward()
        losses.append(loss.item())
        for is_here in (True, False):
            if is_here == before and step % 3 == 2:
                run.log({name: 7.0})
            if is_here:
                optimizer.step()
    run.controls.settle()
    assert run.series("", name).values.tolist() == [7.0] * 3
    assert run.series("", BACKWARD_LOSS).values.tolist() == pytest.approx(losses)
    assert fresh_selection(run).series == (("(root)", name),), "the panel's first picture"
    assert scalar_of(run) == name


@pytest.mark.parametrize("before", [False, True])
def test_it_is_not_recorded_twice_where_the_loop_logs_the_loss_of_every_step(
    watch: Watch, before: bool
) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model, optimizer, probes=READS_IT)
    for step in range(5):
        optimizer.zero_grad()
        loss = loss_of(model(batch(step)))
        loss.backward()
        if before:
            run.log(loss=loss)
        optimizer.step()
        if not before:
            run.log(loss=loss)
    run.controls.settle()
    assert run.series("", "loss").size == 5
    assert BACKWARD_LOSS not in run.data


@pytest.mark.parametrize(("every", "reads"), [(1, "logged"), (8, "measured")])
def test_quantities_read_the_loss_that_is_there_in_most_steps(
    watch: Watch, every: int, reads: str
) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model, optimizer, probes=READS_IT)
    losses = []
    for step in range(16):
        losses.append(train_step(model, optimizer, batch(step)))
        if step % every == every - 1:
            run.log(train_loss=7.0)
    run.controls.settle()
    found = run.series("", "loss_ema").values
    expected = [7.0] * 16 if reads == "logged" else losses
    assert found.size == 16
    assert found[-1] == pytest.approx(sum(expected) / 16, rel=1e-5)


def trained_by_factors(run: nbp.Run, model: torch.nn.Module, factors: list[float]) -> None:
    """Train at a rate of zero, and log the mean of every ten losses that are finite."""
    optimizer, losses = sgd(model, lr=0.0), []
    for step, factor in enumerate(factors):
        optimizer.zero_grad()
        loss = loss_of(model(batch(0))) * factor
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step % 10 == 9:
            finite = [one for one in losses[-10:] if math.isfinite(one)]
            run.log(train_loss=sum(finite) / len(finite))
    run.controls.settle()


def test_rules_follow_it_where_the_loop_logs_the_mean_of_an_epoch(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    quiet = [1.0 + 0.01 * (step % 3) for step in range(45)]
    trained_by_factors(run, model, [*quiet, 50.0, 100.0, math.nan])
    found = {alert.rule: alert for alert in run.alerts}
    assert {"diverging_loss", "nonfinite_loss"} <= set(found)
    assert found["nonfinite_loss"].quantities == (BACKWARD_LOSS,)
    assert (found["nonfinite_loss"].step, found["diverging_loss"].step) == (47, 46)


def test_a_quiet_loss_is_no_alert_where_the_loop_logs_the_mean_of_an_epoch(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    trained_by_factors(run, model, [1.0 + 0.01 * (step % 3) for step in range(48)])
    assert not {alert.rule for alert in run.alerts} & {
        "diverging_loss",
        "nonfinite_loss",
        "loss_spike",
    }


def test_a_loss_of_an_evaluation_is_none_of_a_step(watch: Watch) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model, optimizer, probes=READS_IT)
    losses = []
    for step in range(4):
        losses.append(train_step(model, optimizer, batch(step)))
        run.log(loss=100.0, val_loss=losses[-1] + 1.0, phase="eval")
    run.controls.settle()
    assert run.series("", BACKWARD_LOSS).values.tolist() == pytest.approx(losses)
    gaps = run.series("", "train_eval_gap").values
    assert gaps[0] == pytest.approx(1.0, rel=1e-4)
    assert loss_of_run(run).last == pytest.approx(losses[-1])


def test_the_panel_begins_with_it(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    train_step(model, sgd(model), batch(0))
    run.log(accuracy=0.5)
    run.controls.settle()
    assert fresh_selection(run).series[0] == ("(root)", BACKWARD_LOSS)
    assert scalar_of(run) == BACKWARD_LOSS


@pytest.mark.parametrize("probes", [None, {"0": "weight_norm"}])
def test_who_names_what_is_measured_gets_just_that(watch: Watch, probes: object) -> None:
    model = made(mlp)
    run = watch(model, probes=probes)
    train_step(model, sgd(model), batch(0))
    run.controls.settle()
    assert BACKWARD_LOSS not in run.data
    run.attach("", "loss_ema")
    train_step(model, sgd(model), batch(1))
    run.controls.settle()
    assert run.series("", BACKWARD_LOSS).step.values.tolist() == [1]
    run.detach("", "loss_ema")
    train_step(model, sgd(model), batch(2))
    run.controls.settle()
    assert run.series("", BACKWARD_LOSS).step.values.tolist() == [1]


@pytest.mark.slow
def test_a_record_that_goes_on_goes_on_with_it(tmp_path: Path) -> None:
    store = tmp_path / "run.zarr"
    losses: list[float] = []
    for first in (0, 3):
        model = made(mlp)
        optimizer = sgd(model)
        with nbp.watch(model, store=store, step=first or None) as run:
            losses[first:] = [train_step(model, optimizer, batch(step)) for step in range(4)]
            assert run.series("", BACKWARD_LOSS).step.values.tolist() == [*range(first + 4)]
    values = nbp.open_run(store).series("", BACKWARD_LOSS).values
    assert values.tolist() == pytest.approx(losses)


def train_on_device(store: Path) -> tuple[list[float], list[float]]:
    """Losses as they were recorded and as they were; no step waits."""
    never_by_itself()
    model = moved(made(mlp))
    optimizer = sgd(model)
    run = nbp.watch(model, store=store, probes={"": "loss_ema"}, budget=None)
    losses = []
    for step in range(6):
        optimizer.zero_grad()
        loss = loss_on(model(on_device(batch(step))))
        loss.backward()
        losses.append(host(loss.detach()).item())
        with torch.no_grad():
            loss.mul_(0)  # as who sums it over processes writes over it
        optimizer.step()
    assert not waits, waits
    assert not copies, copies
    run.controls.settle()
    recorded = run.series("", BACKWARD_LOSS).values.tolist()
    run.close()
    return recorded, losses


@pytest.mark.slow
def test_no_step_waits_for_the_loss_of_a_device(accelerator: Accelerator, tmp_path: Path) -> None:
    recorded, losses = accelerator.run(train_on_device, tmp_path / "run.zarr")
    assert recorded == pytest.approx(losses)
