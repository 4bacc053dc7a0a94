"""Snapshots written amid a training: whole or not there, known by the file beside them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from notebook_probe.errors import CheckpointError, RecordWarning
from notebook_probe.summary.landscape.metadata import FOLDER, NAME
from notebook_probe.summary.landscape.settings import LandscapeSettings
from notebook_probe.summary.landscape.stored import StoredSnapshots
from notebook_probe.summary.landscape.writing import SnapshotWriter
from tests.models import ConvNet, Tied


def settings(*intervals: list[int], **more: Any) -> LandscapeSettings:
    return LandscapeSettings.of({"intervals": [*intervals], **more})


def walk(model: nn.Module) -> None:
    with torch.no_grad():
        for own in model.parameters():
            own.add_(torch.randn_like(own))


def train(
    folder: Path, given: LandscapeSettings, units: range, model: nn.Module | None = None
) -> dict[int, dict[str, torch.Tensor]]:
    """Takes a snapshot wherever one is wanted; what the model was there."""
    model = model or nn.Linear(3, 2)
    writer, states = SnapshotWriter(folder, given), {}
    writer.begin(model, units[0] - 1)
    for unit in units:
        walk(model)
        if writer.wants(unit):
            writer.take(model, unit, loss=1 / unit)
            states[unit] = {name: own.clone() for name, own in model.state_dict().items()}
    writer.end(steps_per_epoch=5)
    return states


def metadata(folder: Path) -> Any:
    return json.loads((folder / FOLDER / NAME).read_text())


def test_each_snapshot_is_the_model_after_its_unit_and_is_called_after_both(tmp_path: Path) -> None:
    states = train(tmp_path, settings([1, 2, 4], [4, 6, 9]), range(1, 12), ConvNet())
    files = sorted(path.name for path in (tmp_path / FOLDER).iterdir())
    assert files == [*(f"ConvNet_{unit}_step.pt" for unit in (1, 2, 4, 6, 9)), NAME]
    stored = StoredSnapshots.at(tmp_path)
    for unit, state in states.items():
        found = stored.read(unit)
        held = {**found.parameters, **found.buffers}
        assert held.keys() == state.keys(), "buffers too"
        assert all(torch.equal(held[name], state[name]) for name in state)
    assert [one.number for one in stored.path(0)] == [1, 2, 4]
    assert [one.number for one in stored.path()] == [4, 6, 9]
    assert stored.last().number == 9


def test_the_file_beside_them_says_what_they_are(tmp_path: Path) -> None:
    given = settings([1, 2, 3], unit="epoch", landscape_size=5)
    train(tmp_path, given, range(1, 4))
    found = metadata(tmp_path)
    assert found["network"] == "Linear"
    assert found["settings"] == given.as_dict()
    assert found["groups"] == [[1, 2, 3]]
    assert found["files"] == {str(unit): f"Linear_{unit}_epoch.pt" for unit in (1, 2, 3)}
    assert found["losses"] == {str(unit): 1 / unit for unit in (1, 2, 3)}
    assert found["steps_per_epoch"] == 5


def test_shared_parameters_are_kept_once(tmp_path: Path) -> None:
    train(tmp_path, settings([1, 2, 3]), range(1, 4), Tied())
    assert [*StoredSnapshots.at(tmp_path).read(2).parameters] == ["embed.weight"]


def test_a_training_that_goes_on_keeps_the_snapshots_before_it(tmp_path: Path) -> None:
    before = train(tmp_path, settings([1, 3, 5]), range(1, 5))
    train(tmp_path, settings([1, 3, 5]), range(3, 8))
    assert metadata(tmp_path)["groups"] == [[1, 3, 5]]
    kept = StoredSnapshots.at(tmp_path).read(1).parameters["weight"]
    assert torch.equal(kept, before[1]["weight"])


def test_one_that_begins_anew_or_another_model_knows_only_its_own(tmp_path: Path) -> None:
    train(tmp_path, settings([1, 2, 3, 4, 5]), range(1, 6))
    train(tmp_path, settings([1, 2, 3, 4, 5]), range(1, 4))
    assert metadata(tmp_path)["groups"] == [[1, 2, 3]]
    assert (tmp_path / FOLDER / "Linear_5_step.pt").exists(), "nothing is deleted"
    train(tmp_path, settings([1, 2, 3, 4, 5]), range(4, 6), ConvNet())
    assert metadata(tmp_path)["groups"] == [[4, 5]]


def test_what_cannot_be_written_is_told_and_the_next_is_tried(tmp_path: Path) -> None:
    writer, model = SnapshotWriter(tmp_path, settings([1, 2, 3])), nn.Linear(3, 2)
    writer.begin(model, 0)
    (tmp_path / FOLDER).write_text("a file where the folder should be")
    writer.take(model, 1)
    with pytest.warns(RecordWarning, match=r"snapshot 1 of the loss landscape was not written"):
        writer.wait()
    (tmp_path / FOLDER).unlink()
    writer.take(model, 2)
    writer.end()
    assert metadata(tmp_path)["groups"] == [[2]]


def test_where_many_cannot_be_written_it_is_said_twice(tmp_path: Path) -> None:
    writer, model = SnapshotWriter(tmp_path, settings([1, 2, 3, 4])), nn.Linear(3, 2)
    writer.begin(model, 0)
    (tmp_path / FOLDER).write_text("a file where the folder should be")

    def all_of_it() -> None:
        for number in (1, 2, 3, 4):
            writer.take(model, number)
        writer.end()

    with pytest.warns(RecordWarning) as said:
        all_of_it()
    first, last = [str(one.message) for one in said]
    assert first.startswith("snapshot 1 of the loss landscape was not written")
    assert first.endswith("; the next ones are tried")
    assert last.startswith("4 files of the loss landscape were not written to ")


def test_a_class_is_no_snapshot_and_runs_no_code(tmp_path: Path) -> None:
    train(tmp_path, settings([1, 2, 3]), range(1, 4))
    own = tmp_path / FOLDER / "Linear_2_step.pt"
    torch.save({"format": 1, "model": nn.Linear(1, 1)}, own)
    with pytest.raises(CheckpointError, match=r"Linear_2_step.pt cannot be read as a snapshot"):
        StoredSnapshots.at(tmp_path).path()
    torch.save({"weights": torch.ones(1)}, own)
    with pytest.raises(CheckpointError, match="no snapshot of a landscape"):
        StoredSnapshots.at(tmp_path).read(2)


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[1]", b'{"network": "../x"}', b"\xff"],
)
def test_a_file_beside_them_of_something_else_is_said(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(CheckpointError, match="lists no snapshots"):
        StoredSnapshots.at(tmp_path)


def test_no_file_outside_the_folder_is_read(tmp_path: Path) -> None:
    train(tmp_path, settings([1, 2, 3]), range(1, 4))
    found = metadata(tmp_path)
    found["files"]["1"] = "../secret.pt"
    (tmp_path / FOLDER / NAME).write_text(json.dumps(found))
    with pytest.raises(CheckpointError, match="no file of its folder"):
        StoredSnapshots.at(tmp_path)


def test_an_empty_folder_and_a_short_path_are_said(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"no train_metadata.json in .*: a SummaryCollector"):
        StoredSnapshots.at(tmp_path)
    train(tmp_path, settings([1, 2, 3], [8, 9, 10]), range(1, 10))
    stored = StoredSnapshots.at(tmp_path / FOLDER)
    assert [one.number for one in stored.path()] == [1, 2, 3], "the last that can be drawn"
    assert stored.last().number == 9
    with pytest.raises(CheckpointError, match=r"interval=1: 1 of .* there are: 1, 2, 3; 8, 9"):
        stored.path(1)


def test_its_cost_is_said(tmp_path: Path) -> None:
    writer = SnapshotWriter(tmp_path, settings([1, 2, 3]))
    said = writer.cost(nn.Linear(999, 1000, dtype=torch.float32))
    assert said == f"3 snapshots of 4 MB, 12 MB in {tmp_path / FOLDER}"


KILLED = """
import sys, torch
from torch import nn
from notebook_probe.summary.landscape.settings import LandscapeSettings
from notebook_probe.summary.landscape.writing import SnapshotWriter
model = nn.Linear(400, 400)
given = LandscapeSettings.of({"intervals": [[*range(1, 1001)]]})
writer = SnapshotWriter(sys.argv[1], given)
writer.begin(model, 0)
for unit in range(1, 1001):
    nn.init.constant_(model.weight, unit)
    writer.take(model, unit)
    print(unit, flush=True)
"""


@pytest.mark.stories  # kills five processes that import torch
def test_of_a_training_that_is_killed_at_any_moment_every_known_snapshot_is_whole(
    tmp_path: Path,
) -> None:
    for attempt in range(5):
        folder = tmp_path / str(attempt)
        with subprocess.Popen(
            [sys.executable, "-c", KILLED, str(folder)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            while int(process.stdout.readline()) < 4 + attempt:
                pass
            process.send_signal(signal.SIGKILL)
        stored = StoredSnapshots.at(folder)
        [numbers] = stored.metadata.paths
        assert len(numbers) >= 3
        for number in numbers:
            weight = stored.read(number).parameters["weight"]
            assert torch.equal(weight, torch.full_like(weight, number))
