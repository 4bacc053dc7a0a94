"""What is logged: of the step that was trained, or of the state that is evaluated."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import notebook_probe as nbp
from tests.models import floats, made, mlp, sgd, train, train_step
from tests.run.conftest import Watch

batch = floats(5, 4)


def steps_of(run: nbp.Run | nbp.OpenedRun, name: str) -> dict[int, float]:
    series = run.series("", name)
    return dict(zip(series.step.values.tolist(), series.values.tolist(), strict=True))


def test_each_of_two_evaluations_round_an_update_has_its_own_step(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.log(val_loss=3.0, phase="eval")
    train_step(model, sgd(model), batch(0))
    run.log(loss=2.0)
    run.log(val_loss=torch.tensor(1.0), phase="eval")
    assert steps_of(run, "val_loss") == {0: 3.0, 1: 1.0}
    run.close()
    kept = nbp.open_run(run.location)
    assert steps_of(kept, "val_loss") == {0: 3.0, 1: 1.0}
    assert steps_of(kept, "loss") == {0: 2.0}
    assert kept.data.step.values.tolist() == [0, 1]


@pytest.mark.parametrize("given", [5, torch.tensor(5.0), "loss", [("loss", 5.0)]])
def test_a_number_without_a_name_is_refused_with_how_to_name_it(watch: Watch, given: Any) -> None:
    run = watch(made(mlp), probes=None)
    with pytest.raises(nbp.QuantityError, match=r"log\(\w+\): numbers by name .* log\(loss=loss\)"):
        run.log(given)


def test_an_evaluation_lies_at_the_step_of_an_eval_probe_of_the_same_pass(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.attach("", "output_norm", phase="eval")
    optimizer = sgd(model)
    for step in range(3):
        train_step(model, optimizer, batch(step))
        with torch.no_grad():
            loss = model.eval()(batch(9)).square().mean()
        model.train()
        run.log(val_loss=loss, phase="eval")
    assert run.series("", "val_loss").step.values.tolist() == [1, 2, 3]
    assert run.series("", "eval_output_norm").step.values.tolist() == [1, 2, 3]


def test_a_log_before_an_evaluation_in_a_later_cell_takes_nothing_from_its_probes(
    watch: Watch,
) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    run.attach("", "output_norm", phase="eval")
    train_step(model, sgd(model), batch(0))
    run.log(val_loss=1.0, phase="eval")
    run.controls.settle()
    with torch.no_grad():
        model.eval()(batch(9))
    run.controls.settle()
    run.log(val_accuracy=0.5, phase="eval")
    with pytest.warns(nbp.ReplacedWarning, match="log.val_loss.: step 1 has a value"):
        run.log(val_loss=2.0, phase="eval")
    assert steps_of(run, "val_accuracy") == {1: 0.5}
    assert steps_of(run, "val_loss") == {1: 2.0}
    assert run.series("", "eval_output_norm").step.values.tolist() == [1]
    assert run.status().problem == ""


def test_after_a_resume_the_same_state_may_be_logged_and_measured(tmp_path: Path) -> None:
    model = made(mlp)
    with nbp.watch(model, store=tmp_path, probes=None) as run:
        train(model, sgd(model), batch, range(3))
        run.log(val_loss=1.0, phase="eval")
    with nbp.watch(model, store=tmp_path, probes=None) as run:
        run.attach("", "output_norm", phase="eval")
        with torch.no_grad():
            model.eval()(batch(9))
        run.log(val_accuracy=0.5, phase="eval")
    kept = nbp.open_run(tmp_path)
    assert (steps_of(kept, "val_loss"), steps_of(kept, "val_accuracy")) == ({3: 1.0}, {3: 0.5})
    assert kept.series("", "eval_output_norm").step.values.tolist() == [3]


def test_a_number_that_is_replaced_is_warned_of_once_for_each_name(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    optimizer = sgd(model)
    run.log(val_loss=3.0)
    with pytest.warns(nbp.ReplacedWarning, match=r"run.log\(val_loss=..., phase='eval'\)") as seen:
        run.log(val_loss=2.0)
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run.log(val_loss=1.0)
        train_step(model, optimizer, batch(0))
        run.log(loss=1.0, val_loss=1.0)
        run.log(loss=2.0)  # of the step to come
    with pytest.warns(nbp.ReplacedWarning, match=r"log\(loss\): step 1"):
        run.log(loss=3.0, val_loss=2.0)


def test_the_advice_can_be_typed_whatever_the_name(watch: Watch) -> None:
    run = watch(made(mlp), probes=None)
    run.log({"val/loss": 3.0})
    with pytest.warns(nbp.ReplacedWarning, match=r"run.log\({'val/loss': ...}, phase='eval'\)"):
        run.log({"val/loss": 2.0})


def test_one_name_of_a_step_and_of_a_state_is_warned_of_and_loses_no_step(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    optimizer = sgd(model)
    run.log(loss=9.0, phase="eval")
    for step in range(3):
        train_step(model, optimizer, batch(step))
        if step == 0:
            with pytest.warns(nbp.ReplacedWarning, match="has another name"):
                run.log(loss=float(step))
        else:
            run.log(loss=float(step))
    assert steps_of(run, "loss") == {0: 0.0, 1: 1.0, 2: 2.0}


def test_another_phase_is_refused(watch: Watch) -> None:
    run = watch(made(mlp), probes=None)
    with pytest.raises(
        nbp.QuantityError, match=r"log\(phase='test'\); allowed: 'training', 'eval'"
    ):
        run.log(loss=1.0, phase="test")  # type: ignore[arg-type]


def test_quantities_of_the_step_read_what_was_logged_of_the_state(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes={"": ["train_eval_gap"]})
    optimizer = sgd(model)
    for step in range(4):
        train_step(model, optimizer, batch(step))
        run.log(loss=float(step))
        if step % 2:
            run.log(val_loss=10.0, phase="eval")
    assert steps_of(run, "train_eval_gap") == {1: 10.0 - 0.5, 3: 10.0 - 2.5}
    assert steps_of(run, "val_loss") == {2: 10.0, 4: 10.0}
    assert steps_of(run, "loss") == {step: float(step) for step in range(4)}


def test_inside_at_step_both_phases_are_of_that_step(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model, probes=None)
    optimizer = sgd(model)
    for step in range(3):
        train_step(model, optimizer, batch(step))
        run.log(val_loss=float(step), phase="eval")
    with run.at_step(1):
        run.log(val_loss=-1.0, phase="eval")
        run.log(val_loss=-2.0)
    np.testing.assert_array_equal(run.series("", "val_loss"), [-2.0, 1.0, 2.0])
