"""Which states are the best: evaluations count before a state is saved, and after."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from notebook_probe.train import Checkpoints, Loop
from notebook_probe.train.metrics.metrics import Metrics
from tests.train.checkpoints.kinds import same_state
from tests.train.conftest import a_loop, batches

BEST: Any = ("eval_loss", "min", 1)


def valued(loop: Loop, values: list[float]) -> None:
    """Evaluations have these losses, one after the other."""
    left: Iterator[float] = iter(values)
    loop.trainer.eval = lambda data: Metrics(loss=next(left))  # type: ignore[method-assign]


def test_the_best_epoch_stays_where_epochs_are_evaluated_when_they_are_over(tmp_path: Path) -> None:
    loop = a_loop()
    valued(loop, [3.0, 1.0, 2.0, 4.0])
    loop.eval_every(batches(1))
    loop.add(Checkpoints(tmp_path, every=2, keep_best=BEST))
    loop.run_epochs(batches(2), 4)
    assert {one.step: one.metrics["eval_loss"] for one in loop.checkpoints} == {4: 1.0, 8: 4.0}
    assert {path.name for path in tmp_path.glob("*.pt")} == {"step_00000004.pt", "step_00000008.pt"}


def test_an_evaluation_that_did_not_come_any_more_is_made_up_for(tmp_path: Path) -> None:
    first = a_loop()
    first.add(Checkpoints(tmp_path, every=2, keep_best=BEST))
    first.on_epoch(lambda loop: loop.stop())  # the state is saved, and not evaluated
    with pytest.warns(UserWarning, match="no value of 'eval_loss'"):
        first.run_epochs(batches(2), 2)
    assert "eval_loss" not in first.checkpoints[0].metrics

    loop = a_loop()
    valued(loop, [1.0, 2.0])
    loop.add(Checkpoints(tmp_path, every=2, keep_best=BEST))
    loop.eval_every(batches(1))
    loop.load_checkpoint(tmp_path)
    loop.run_epochs(batches(2), 2)
    assert {one.step: one.metrics["eval_loss"] for one in loop.checkpoints} == {2: 1.0, 4: 2.0}


def test_an_evaluation_of_another_state_changes_nothing(tmp_path: Path) -> None:
    loop = a_loop()
    valued(loop, [1.0])
    loop.add(Checkpoints(tmp_path, every=2, keep_best=BEST))
    with pytest.warns(UserWarning, match="no value of 'eval_loss'"):
        loop.run_steps(batches(3), 3)
    loop.eval(batches(1))
    assert [dict(one.metrics).get("eval_loss") for one in loop.checkpoints] == [None]


def test_the_weights_of_the_best_can_be_looked_at_while_the_record_is_open(
    tmp_path: Path, watched: Any
) -> None:
    loop = a_loop()
    run = watched(loop)
    valued(loop, [1.0, 3.0])
    loop.eval_every(batches(1), 1)
    loop.add(Checkpoints(tmp_path, every=1))
    kept: list[dict[str, torch.Tensor]] = []
    model = loop.trainer.model
    loop.on_step(lambda *_: kept.append({k: v.clone() for k, v in model.state_dict().items()}))
    loop.run_steps(batches(2), 2)
    best = min(loop.checkpoints, key=lambda saved: saved.metrics["eval_loss"])
    loop.load_checkpoint(tmp_path, best.step, to_restore=lambda name: True)
    assert same_state(dict(model.state_dict()), kept[0])
    assert (loop.loop_step, run.controls.status_head().step) == (2, 2)
