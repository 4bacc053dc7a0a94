"""A checkpoint that was written is an event of the record that the loop writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import notebook_probe as nbp
from notebook_probe.errors import ClosedRunError
from notebook_probe.train import Checkpoints
from tests.models import made, mlp
from tests.train.checkpoints.kinds import loop_of


def test_each_is_told_with_step_size_place_and_loss(tmp_path: Path) -> None:
    loop, data = loop_of("mlp")
    loop.add(Checkpoints(tmp_path / "kept", every=4))
    run = loop.watch(store=tmp_path / "run.zarr", probes=None)
    loop.run_epochs(data, 2)  # of 4 batches
    saved = [event for event in run.events if event.kind == "checkpoint"]
    told = [json.loads(event.detail) for event in saved]
    assert [event.step for event in saved] == [one["step"] for one in told] == [4, 8]
    for one, known in zip(told, loop.checkpoints, strict=True):
        assert one["path"] == known.path
        assert one["bytes"] == Path(one["path"]).stat().st_size
        assert one["loss"] == pytest.approx(known.metrics["loss"])


def test_without_a_record_nothing_is_told_and_a_closed_run_is_left_alone(tmp_path: Path) -> None:
    loop, data = loop_of("mlp")
    loop.save_checkpoint(tmp_path / "kept")
    run = loop.watch(store=tmp_path / "run.zarr", probes=None)
    loop.run_epochs(data, 1)
    run.close()
    loop.save_checkpoint(tmp_path / "kept")
    assert "checkpoint" not in {event.kind for event in nbp.open_run(run.location).events}
    with pytest.raises(ClosedRunError):
        run.controls.checkpoint_saved(3, "x.pt", 1)


def test_a_loop_of_ones_own_may_tell_of_its_checkpoints(tmp_path: Path) -> None:
    model = made(mlp)
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        run.controls.checkpoint_saved(7, "mine.pt", 12, 0.5)
        [event] = [event for event in run.events if event.kind == "checkpoint"]
    expected = {"step": 7, "bytes": 12, "path": "mine.pt", "loss": 0.5}
    assert (event.step, json.loads(event.detail)) == (7, expected)
