"""Disks that are full, folders that are gone, checkpoints that are damaged or hostile."""

import os
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

from notebook_probe.errors import CheckpointError, HookError
from notebook_probe.opened import open_run
from notebook_probe.train.checkpoints.places import CheckpointFolder
from tests.experiment.saving.lives import life
from tests.train.checkpoints.kinds import same_state

SAVE: dict[str, Any] = {"save_filters_freq": 4, "cache_filters_freq": 2, "save_valid_freq": None}


def test_a_folder_that_cannot_be_written_is_told_before_the_first_unit(tmp_path: Path) -> None:
    (tmp_path / "vision").write_text("a file")
    with pytest.raises(HookError, match="cannot be written") as told:
        life(tmp_path, 8, **SAVE)
    assert isinstance(told.value.__cause__, CheckpointError)


def test_an_error_of_the_writer_is_raised_by_the_next_save(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = CheckpointFolder.write
    seen: list[int] = []

    def full(place: CheckpointFolder, name: str, fill: Any) -> None:
        if name == "step_00000002.pt":
            raise OSError(28, "No space left on device")
        write(place, name, fill)

    monkeypatch.setattr(CheckpointFolder, "write", full)
    with pytest.raises(HookError, match="the checkpoint of step 2 was not written") as told:
        life(tmp_path, 8, results=Seen(seen), **SAVE)
    assert isinstance(told.value.__cause__, CheckpointError)
    assert len(seen) == 4  # of the next save
    monkeypatch.undo()
    assert life(tmp_path, 8, **SAVE).restored.step == 0  # what was there before still is


class Seen(dict[str, Any]):
    """No results; counts for how many units it was asked."""

    def __init__(self, seen: list[int]) -> None:
        self.seen = seen

    def items(self) -> Any:
        self.seen.append(1)
        return super().items()


def test_an_error_of_the_last_save_is_raised_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life(tmp_path, 6, **SAVE)
    write = CheckpointFolder.write

    def full(place: CheckpointFolder, name: str, fill: Any) -> None:
        if name.endswith("8.pt"):
            raise OSError(28, "No space left on device")
        write(place, name, fill)

    monkeypatch.setattr(CheckpointFolder, "write", full)
    with pytest.raises(CheckpointError, match="step 8 was not written"):
        life(tmp_path, 8, **SAVE)
    monkeypatch.undo()
    assert life(tmp_path, 8, **SAVE).restored.step == 6


def cut(file: Path) -> Path:
    file.write_bytes(file.read_bytes()[:1000])
    return file


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    newest = cut(life(tmp_path, 6, **SAVE).place.recent / "step_00000006.pt")
    with pytest.raises(CheckpointError, match=r"step_00000006.pt cannot be read as a checkpoint"):
        life(tmp_path, 8, {"fall_back": False}, **SAVE)
    newest.unlink()  # then the one before is the newest
    assert life(tmp_path, 8, {"fall_back": False}, **SAVE).restored.step == 4


def test_a_training_goes_on_from_before_a_damaged_checkpoint_as_if_that_never_was(
    tmp_path: Path,
) -> None:
    place = life(tmp_path / "damaged", 6, watched=True, **SAVE).place
    cut(place.recent / "step_00000006.pt")
    with pytest.warns(UserWarning, match=r"0006.pt cannot .*continues from .*/step_00000004.pt"):
        again = life(tmp_path / "damaged", 8, watched=True, **SAVE)
    assert (again.restored.step, again.restored.rule) == (4, 2)
    whole = life(tmp_path / "whole", 8, watched=True, **SAVE)
    states = [dict(one.loop.trainer.model.state_dict()) for one in (again, whole)]
    assert same_state(*states)
    losses = [open_run(one.place.record).series("", "loss").values for one in (again, whole)]
    assert [*losses[0]] == [*losses[1]]
    assert life(tmp_path / "damaged", 8, **SAVE).restored.step == 8  # which was saved anew


def test_several_that_are_damaged_are_left_and_where_all_are_nothing_begins_anew(
    tmp_path: Path,
) -> None:
    place = life(tmp_path, 6, **SAVE).place
    cut(place.recent / "step_00000006.pt")
    cut(place.checkpoints / "step_00000004.pt")
    with pytest.warns(UserWarning, match=r"0006.pt cannot .*continues from .*/step_00000002.pt"):
        assert life(tmp_path, 0, **SAVE).restored.step == 2
    for file in (place.recent / "step_00000002.pt", place.checkpoints / "step_00000000.pt"):
        cut(file)
    with pytest.raises(CheckpointError, match=r"step_00000006.pt cannot be read as a checkpoint"):
        life(tmp_path, 0, **SAVE)


def test_one_that_cannot_be_opened_is_not_taken_for_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    life(tmp_path, 6, **SAVE)

    def gone(place: CheckpointFolder, name: str) -> Any:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(CheckpointFolder, "open", gone)
    with pytest.raises(CheckpointError, match=r"step_00000006.pt .*Permission denied"):
        life(tmp_path, 8, **SAVE)


class Planted:
    def __reduce__(self) -> Any:
        return os.system, ("touch planted",)


@pytest.mark.parametrize("how", ["torch", "pickle"])
def test_the_code_of_a_foreign_file_is_never_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "foreign.pt"
    if how == "torch":
        torch.save({"format": Planted()}, file)
    else:
        file.write_bytes(pickle.dumps(Planted()))
    with pytest.raises(CheckpointError, match=r"foreign.pt cannot be read as a checkpoint"):
        life(tmp_path / "home", 4, {"from_ckpt": str(file)}, **SAVE)
    assert not (tmp_path / "planted").exists()


def test_a_list_that_names_files_elsewhere_is_refused(tmp_path: Path) -> None:
    place = life(tmp_path, 6, **SAVE).place
    listed = place.recent / "checkpoints.json"
    listed.write_text(listed.read_text().replace("step_00000002.pt", "../../precious.pt"))
    with pytest.raises(CheckpointError, match="no list of checkpoints"):
        life(tmp_path, 8, **SAVE)


def test_a_linked_folder_is_used_and_of_a_linked_file_the_link_alone_goes(tmp_path: Path) -> None:
    save = {**SAVE, "cache_max_num": 1, "save_filters_freq": None}
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    folder = tmp_path / "home" / "vision" / "first"
    folder.mkdir(parents=True)
    (folder / "recent").symlink_to(scratch)
    life(tmp_path / "home", 2, **save)
    kept = scratch / "step_00000002.pt"
    kept.rename(tmp_path / "precious.pt")
    kept.symlink_to(tmp_path / "precious.pt")
    assert life(tmp_path / "home", 4, **save).restored.step == 2
    assert not kept.is_symlink()
    assert (tmp_path / "precious.pt").exists()
    assert (scratch / "step_00000004.pt").exists()


def test_what_others_put_beside_checkpoints_stays(tmp_path: Path) -> None:
    save = {**SAVE, "cache_max_num": 1}
    place = life(tmp_path, 2, **save).place
    (place.recent / "step_00000006.pt").write_text("mine")
    (place.recent / "notes.txt").write_text("mine")
    life(tmp_path, 10, **save)
    assert {path.name for path in place.recent.iterdir()} == {
        "step_00000006.pt", "notes.txt", "step_00000010.pt", "checkpoints.json"
    }  # fmt: skip
    assert (place.recent / "step_00000006.pt").read_text() == "mine"
