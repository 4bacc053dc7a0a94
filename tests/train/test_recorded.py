"""What a loop brings into the record of its run, and at which steps."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.errors import RecordWarning, RecordWriteError
from notebook_probe.run.attach.requests import Control
from notebook_probe.train import Dataset, Loop
from tests.train.conftest import a_loop, batches

Watched = Callable[..., nbp.Run]


def test_losses_and_metrics_reach_the_record_at_their_steps(watched: Watched) -> None:
    loop = a_loop(train_metrics={"accuracy": lambda p, y: (p.argmax(1) == y).float()})
    run = watched(loop)
    reported: dict[str, list[float]] = {}

    def report(loop: Loop, metrics: Any) -> None:
        for name, value in metrics.items():
            reported.setdefault(name, []).append(float(value))

    loop.on_step(report)
    loop.run_epochs(batches(4), 2)
    for name, values in reported.items():
        found = run.data[name]
        assert found["step"].values.tolist() == [*range(8)]
        assert found.values.ravel().tolist() == [torch.tensor(v).float().item() for v in values]


def test_an_evaluation_is_recorded_at_the_state_it_is_of(watched: Watched) -> None:
    loop = a_loop()
    run = watched(loop)
    before = loop.eval(batches(2))
    loop.run_epochs(batches(3), 1)
    after = loop.eval(Dataset(batches(2), "test"))
    assert [*before] == [*after] == ["loss", "fn_loss"]
    data = run.data
    assert data["eval_loss"].dropna("step")["step"].values.tolist() == [0]
    assert data["test_loss"].dropna("step")["step"].values.tolist() == [3]
    assert loop.last_metrics["test_loss"] == after["loss"]


def test_targets_reach_quantities_and_waiting_is_measured(watched: Watched) -> None:
    loop = a_loop(model=nn.Sequential(nn.Linear(3, 2)))
    run = watched(loop, probes={"": ["accuracy", "data_wait_share"]})
    rights: list[float] = []

    def seen(module: nn.Module, args: Any, output: torch.Tensor) -> None:
        index = len(rights)
        rights.append(float((output.argmax(1) == data[index][1]).float().mean()))

    data = batches(4)
    loop.trainer.model.register_forward_hook(seen)
    loop.run_epochs(data, 1)
    assert run.series("", "accuracy").values.tolist() == rights
    assert (run.series("", "data_wait_share").values >= 0).all()


def test_stop_in_the_panel_draws_no_batch_that_is_not_trained(watched: Watched) -> None:
    loop, data = a_loop(), Dataset(batches(8))
    run = watched(loop)
    loop.on_step(lambda loop, m: run.controls.put(Control("stop")) if loop.loop_step == 2 else None)
    loop.run_epochs(data, 1)
    assert (loop.stopped, loop.loop_step, data.position) == (True, 3, 3)
    assert run.data["loss"]["step"].values.tolist() == [0, 1, 2]


def test_the_steps_of_the_loop_are_those_of_the_record_where_a_scaler_skips(
    watched: Watched,
) -> None:
    loop = a_loop(scaler=torch.amp.GradScaler("cpu", init_scale=4.0))
    run = watched(loop)
    good, (bad_x, bad_y) = batches(3), batches(1)[0]
    loop.run_epochs([good[0], (bad_x * math.inf, bad_y), *good[1:]], 1)
    assert (loop.loop_step, loop.skipped_steps) == (3, 1)
    assert run.data["loss"]["step"].values.tolist() == [0, 1, 2]


def test_a_loop_whose_record_cannot_be_written_comes_to_its_end(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = a_loop()
    run = watched(loop)

    def full() -> None:
        raise RecordWriteError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(run, "flush", full)
        with pytest.warns(RecordWarning, match="no space left"):
            loop.run_epochs(batches(3), 1)
    assert loop.loop_step == 3
    assert run.data.sizes["step"] == 3


def test_a_run_that_is_closed_does_not_end_the_training(watched: Watched) -> None:
    loop = a_loop()
    run = watched(loop)
    loop.on_step(lambda loop, metrics: run.close())
    assert loop.run_epochs(batches(3), 1) is not None
