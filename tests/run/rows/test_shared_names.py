"""A series has one writer and one phase; of two with one name each is read under its own."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest
import torch
import xarray as xr
from torch import nn

import notebook_probe as nbp
from tests.models import floats, made, mlp, sgd, train_step
from tests.run.conftest import Watch
from tests.run.mirror.loggers import WandbLike

batch = floats(5, 4)
ACCURACY = {0: 50.0, 2: 101.0, 4: 103.0, 6: 105.0}


def by_step(source: nbp.Run | nbp.OpenedRun, name: str) -> dict[int, float]:
    series = source.series("", name)
    return dict(zip(series.step.values.tolist(), series.values.tolist(), strict=True))


def evaluated_and_trained(watch: Watch, *, name: str, first: str) -> nbp.Run:
    """A run that logs one name in six steps and in evaluations of every second state."""
    model = made(mlp)
    optimizer, run = sgd(model), watch(model, probes=None)
    for step in range(6):
        if step == 0 and first == "eval":
            run.log({name: 50.0}, phase="eval")
        train_step(model, optimizer, batch(step))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", nbp.ReplacedWarning)
            run.log({name: float(step)})
            if step % 2:
                run.log({name: 100.0 + step}, phase="eval")
    run.close()
    return run


@pytest.mark.parametrize("name", ["acc", "test/acc", "accuracy", "loss"])
@pytest.mark.parametrize("first", ["training", "eval"])
def test_numbers_of_steps_and_of_evaluations_are_both_read_wherever_a_record_is(
    watch: Watch, name: str, first: str
) -> None:
    run = evaluated_and_trained(watch, name=name, first=first)
    of_states = ACCURACY if first == "eval" else {s: v for s, v in ACCURACY.items() if s}
    for source in (run, nbp.open_run(run.location)):
        assert by_step(source, name) == {step: float(step) for step in range(6)}
        assert by_step(source, f"eval_{name}") == of_states
        assert source.thinned("", f"eval_{name}").y.tolist() == [*of_states.values()]
        table = source.to_dataframe().pivot_table("value", "step", "quantity")
        assert table[name].dropna().tolist() == [0, 1, 2, 3, 4, 5]
        assert table[f"eval_{name}"].dropna().to_dict() == of_states
    with xr.open_dataset(run.location, engine="notebook_probe") as data:
        assert data[name].dropna("step", how="all").values.ravel().tolist() == [0, 1, 2, 3, 4, 5]
        column = data[f"eval_{name}"].dropna("step", how="all")
        assert column.values.ravel().tolist() == [*of_states.values()]


def test_the_user_is_told_once_how_an_evaluation_is_read(watch: Watch) -> None:
    model = made(mlp)
    optimizer, run = sgd(model), watch(model, probes=None)
    train_step(model, optimizer, batch(0))
    run.log(acc=1.0)
    with pytest.warns(nbp.ReplacedWarning, match=r"run\.series\('', 'eval_acc'\)") as seen:
        run.log(acc=2.0, phase="eval")
    assert [one.filename for one in seen] == [__file__]
    train_step(model, optimizer, batch(1))
    run.log(acc=1.0)
    run.log(acc=2.0, phase="eval")


def test_another_logger_gets_both_under_their_own_names(watch: Watch) -> None:
    model, wandb = made(mlp), WandbLike()
    optimizer, run = sgd(model), watch(model, probes=None)
    run.mirror(wandb)

    def train() -> None:
        for step in range(3):
            train_step(model, optimizer, batch(step))
            run.log(acc=float(step))
            run.log(acc=10.0 + step, phase="eval")

    with pytest.warns(nbp.ReplacedWarning, match="eval_acc"):
        train()
    run.close()
    assert [wandb.points["acc", step] for step in range(3)] == [0, 1, 2]
    assert [wandb.points["eval_acc", step] for step in (1, 2, 3)] == [10, 11, 12]


def test_a_name_of_evaluations_alone_stays(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    train_step(model, sgd(model), batch(0))
    run.log(loss=1.0)
    run.log(acc=2.0, phase="eval")
    assert by_step(run, "acc") == {1: 2.0}
    assert "eval_acc" not in run.data


def clipped(run: nbp.Run, model: nn.Module, n: int, logs: Callable[[int], bool]) -> list[float]:
    """Train with clipped gradients, log the norm before clipping, return that after it."""
    optimizer = sgd(model)
    applied = []
    for step in range(n):
        optimizer.zero_grad()
        (100 * model(batch(step)).square().mean()).backward()
        total = nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        grads = [one.grad for one in model.parameters() if one.grad is not None]
        applied.append(float(torch.stack([one.norm() for one in grads]).norm()))
        optimizer.step()
        if logs(step):
            run.log(grad_norm=total)
    return applied


@pytest.mark.parametrize("schedule", ["every(1)", "every(2)"])
def test_a_logged_number_never_replaces_a_measured_one(watch: Watch, schedule: str) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.attach("", "grad_norm", schedule)
    with pytest.warns(nbp.ReplacedWarning, match=r"run\.series\('', 'logged_grad_norm'\)"):
        applied = clipped(run, model, 6, lambda step: True)
    run.close()
    for source in (run, nbp.open_run(run.location)):
        measured = source.series("", "grad_norm")
        np.testing.assert_allclose(measured, np.array(applied)[measured.step], rtol=1e-4)
        assert measured.size == (6 if schedule == "every(1)" else 3)
        assert (source.series("", "logged_grad_norm") > 1).sum() == 6


@pytest.mark.parametrize("first", [0, 2])
def test_a_loss_that_is_logged_as_the_measured_one_has_a_series_of_its_own(
    watch: Watch, first: int
) -> None:
    model = made(mlp)
    run, optimizer, losses = watch(model), sgd(model), []

    def train() -> None:
        for step in range(6):
            losses.append(float(train_step(model, optimizer, batch(step))))
            if step >= first:
                run.log(backward_loss=100.0)

    with pytest.warns(nbp.ReplacedWarning, match=r"run\.series\('', 'logged_backward_loss'\)"):
        train()
    run.close()
    for source in (run, nbp.open_run(run.location)):
        assert [*by_step(source, "backward_loss").values()] == pytest.approx(losses)
        assert by_step(source, "logged_backward_loss") == dict.fromkeys(range(first, 6), 100.0)


def test_a_quantity_that_is_attached_later_does_not_go_on_with_what_was_logged(
    watch: Watch,
) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    clipped(run, model, 3, lambda step: True)
    assert (run.series("", "grad_norm") > 1).sum() == 3, "nothing is measured: the name is free"
    with pytest.warns(nbp.ReplacedWarning, match="logged_grad_norm"):
        run.attach("", "grad_norm")
    applied = clipped(run, model, 3, lambda step: True)
    np.testing.assert_allclose(run.series("", "grad_norm"), applied, rtol=1e-4)
    assert run.series("", "logged_grad_norm").step.values.tolist() == [*range(6)]


def test_a_name_that_is_measured_only_at_modules_stays_the_loops_at_the_whole(
    watch: Watch,
) -> None:
    model = made(mlp)
    run = watch(model, probes={"0": ["grad_norm"]})
    clipped(run, model, 3, lambda step: True)
    assert (run.series("", "grad_norm") > 1).sum() == 3
    assert (run.series("0", "grad_norm") < 1).sum() == 3


def test_both_writers_of_a_name_can_be_written_into_passed_steps(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.attach("", "grad_norm")
    with pytest.warns(nbp.ReplacedWarning, match="logged_grad_norm"):
        clipped(run, model, 3, lambda step: True)
    run.backfill("", "grad_norm", [1], [-1.0])
    run.backfill("", "logged_grad_norm", [0], [-2.0])
    assert run.series("", "grad_norm")[1] == -1.0
    assert run.series("", "logged_grad_norm")[0] == -2.0
    assert run.series("", "grad_norm")[0] > 0


def test_a_number_of_a_passed_step_goes_to_the_phase_that_it_is_of(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    optimizer = sgd(model)

    def train() -> None:
        for step in range(3):
            train_step(model, optimizer, batch(step))
            run.log(acc=float(step))
            run.log(acc=10.0 + step, phase="eval")

    with pytest.warns(nbp.ReplacedWarning, match="eval_acc"):
        train()
    with run.at_step(1):
        run.log(acc=-1.0)
        run.log(acc=-2.0, phase="eval")
    assert by_step(run, "acc") == {0: 0.0, 1: -1.0, 2: 2.0}
    assert by_step(run, "eval_acc") == {1: -2.0, 2: 11.0, 3: 12.0}


def test_an_own_function_called_as_a_logged_scalar_is_refused(watch: Watch) -> None:
    def score(output: torch.Tensor) -> torch.Tensor:
        return output.mean()

    model = made(mlp)
    run = watch(model, probes=None)
    run.log(score=1.0)
    with pytest.raises(nbp.QuantityError, match="give what is measured another name"):
        run.attach("", score)
    run.attach("0", score)


def test_what_the_model_collects_and_the_loop_logs_are_two_series(watch: Watch) -> None:
    class Collecting(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            output = super().forward(x)
            nbp.collect("scale", 1.0)
            return output

    model = Collecting(4, 2)
    run = watch(model, probes=None)
    optimizer = sgd(model)

    def train() -> None:
        for step in range(3):
            train_step(model, optimizer, batch(step))
            run.log(scale=9.0)

    with pytest.warns(nbp.ReplacedWarning, match="logged_scale"):
        train()
    assert by_step(run, "scale") == dict.fromkeys(range(3), 1.0)
    assert by_step(run, "logged_scale") == dict.fromkeys(range(3), 9.0)


def test_a_number_of_evaluations_that_is_called_as_a_measured_one_is_logged(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.attach("", "output_norm", phase="eval")
    train_step(model, sgd(model), batch(0))
    with torch.no_grad():
        model.eval()(batch(9))
    with pytest.warns(nbp.ReplacedWarning, match="logged_eval_output_norm"):
        run.log(eval_output_norm=7.0, phase="eval")
    run.close()
    assert by_step(run, "logged_eval_output_norm") == {1: 7.0}
    assert by_step(run, "eval_output_norm").keys() == {1}
    assert by_step(run, "eval_output_norm") != {1: 7.0}


def test_what_a_part_and_then_the_model_collect_keeps_the_name(watch: Watch) -> None:
    class Part(nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            nbp.collect("scale", 1.0)
            return super().forward(x)

    class Whole(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = Part(4, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            output: torch.Tensor = self.part(x)
            nbp.collect("scale", 2.0)
            return output

    model = Whole()
    run = watch(model, probes=None)
    optimizer = sgd(model)
    train_step(model, optimizer, batch(0))
    with pytest.warns(nbp.ReplacedWarning, match="logged_scale"):
        run.log(scale=9.0)
    train_step(model, optimizer, batch(1))
    run.log(scale=9.0)
    assert by_step(run, "scale") == {0: 2.0, 1: 2.0}
    assert by_step(run, "logged_scale") == {0: 9.0, 1: 9.0}
    assert run.series("part", "scale").values.tolist() == [1.0, 1.0]


def test_what_the_flight_recorder_writes_is_not_mixed_with_what_is_logged(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None, flight=4)
    with pytest.warns(nbp.ReplacedWarning, match="logged_grad_norm"):
        applied = clipped(run, model, 4, lambda step: step == 1)
    assert run.flight is not None
    run.controls.settle()
    run.flight.write()
    np.testing.assert_allclose(run.series("", "grad_norm"), applied, rtol=1e-4)
    assert by_step(run, "logged_grad_norm").keys() == {1}
