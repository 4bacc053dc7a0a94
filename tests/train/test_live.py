"""What is set, expected and stopped while a loop trains."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import notebook_probe as nbp
from notebook_probe.errors import UnknownNameError
from notebook_probe.train import Loop
from tests.train.conftest import a_loop, batches, trainer

Watched = Callable[..., nbp.Run]


def test_a_learning_rate_is_set_by_hand_while_it_trains(watched: Watched) -> None:
    loop = a_loop()
    run = watched(loop, probes={"": ["lr"]})
    loop.on_step(lambda loop, m: run.set("lr", 5e-4) if loop.loop_step == 2 else None)
    loop.run_steps(batches(6), 6)
    assert np.allclose(run.series("", "lr").values, [1e-2] * 3 + [5e-4] * 3, rtol=1e-6)
    [event] = [event for event in run.events if event.kind == "set"]
    assert event.step == 3


def test_a_knob_of_the_trainer_is_one_of_the_run_that_comes_later(watched: Watched) -> None:
    ours = trainer()
    drop = ours.model[1]  # type: ignore[index]
    ours.knob("dropout", lambda: drop.p, lambda p: setattr(drop, "p", p), 0.0, 0.9)
    loop = Loop(ours)
    run = watched(loop)
    ours.knob("noise", lambda: 0.0, lambda value: None)
    assert {"dropout", "noise"} <= {knob.name for knob in run.knobs()}
    loop.on_step(lambda loop, m: run.set("dropout", 0.5))
    loop.run_steps(batches(2), 2)
    assert drop.p == 0.5


def test_the_status_knows_epoch_and_last_step(watched: Watched) -> None:
    loop, seen = a_loop(), []
    run = watched(loop)

    def look(loop: Loop, metrics: Any) -> None:
        head = run.controls.status_head()
        seen.append((head.epoch, head.end_step))

    loop.on_step(look)
    loop.run_epochs(batches(2), 2)
    loop.run_steps(batches(2), 1)
    assert seen == [(0, 4), (0, 4), (1, 4), (1, 4), (-1, 5)]


def test_probes_of_so_many_times_are_split_over_the_loop(watched: Watched) -> None:
    loop = a_loop()
    run = watched(loop)
    run.attach("0", "weight_norm", "times(4)")
    loop.run_epochs(batches(10), 2)
    assert run.series("0", "weight_norm")["step"].values.tolist() == [4, 9, 14, 19]


def test_an_alert_stops_the_loop(watched: Watched) -> None:
    data = batches(1) * 1000
    data[5] = (data[5][0] * float("nan"), data[5][1])
    loop = Loop(trainer(), check_finite=False)
    with pytest.raises(RuntimeError, match="stop_on: alerts are found in the record"):
        loop.stop_on("nonfinite_loss")
    run = watched(loop)
    with pytest.raises(UnknownNameError, match="no rule 'nonfinite_los'; close: 'nonfinite_loss'"):
        loop.stop_on("nonfinite_los")
    loop.stop_on("nonfinite_loss")
    looked = threading.Event()

    def look(loop: Loop, metrics: Any) -> None:
        if loop.loop_step == 8:  # as a writer does once a second
            assert len(run.alerts.of("nonfinite_loss")) == 1
            looked.set()

    loop.on_step(look, priority=-1)
    loop.run_epochs(data, 1)
    assert looked.is_set()
    assert (loop.stopped, loop.loop_step) == (True, 9)
    assert "nonfinite_loss" in loop.stop_reason


def test_a_stop_says_why() -> None:
    loop = a_loop()
    loop.on_step(lambda loop, metrics: loop.stop("enough"))
    loop.run_steps(batches(3), 3)
    assert (loop.stop_reason, loop.loop_step) == ("enough", 1)
