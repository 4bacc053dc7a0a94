"""Clean-up says first what would go, and takes nothing that is not the run's own."""

from __future__ import annotations

import json
import os
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe import train
from notebook_probe.catalogues.marks import change, clean_up
from tests.catalogues.marks.recorded import begun, recorded, row


def everything(folder: Path) -> dict[str, bytes | str]:
    """Every file and link below, and what it is."""
    return {
        str(path): str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


def test_it_shows_first_and_deletes_then(tmp_path: Path) -> None:
    folder, other = recorded(tmp_path / "a.zarr"), recorded(tmp_path / "b.zarr")
    change(folder, lambda marks: marks.tagged(["bad"]))
    before = everything(tmp_path)
    found = clean_up([row(folder)])
    assert everything(tmp_path) == before
    size = sum(len(content) for name, content in before.items() if name.startswith(str(folder)))
    assert found.nbytes == size
    assert str(found).startswith("1 run would be deleted, ")
    assert str(folder) in str(found)
    assert str(folder) in found._repr_html_()
    done = found.delete()
    assert done.gone == (str(folder),)
    assert not done.stays
    assert not folder.exists()
    assert nbp.open_run(other).finished
    assert found.delete().stays[str(folder)].startswith("it is not there")


def test_a_run_that_is_being_written_stays_whatever_its_row_says(tmp_path: Path) -> None:
    folder = tmp_path / "run.zarr"
    run = begun(folder)
    before = set(everything(folder))
    assert clean_up([row(folder, "running")]).stays == {str(folder): "it is being written"}
    done = clean_up([row(folder, "killed")]).delete()
    assert "has another writer" in done.stays[str(folder)]
    assert set(everything(folder)) == before
    run.close()
    assert nbp.open_run(folder).finished


def test_what_a_killed_writer_left_is_deleted_whole(tmp_path: Path) -> None:
    run = begun(tmp_path / "alive.zarr", steps=20)
    folder = tmp_path / "killed.zarr"
    shutil.copytree(tmp_path / "alive.zarr", folder)  # as the disk is at some moment
    run.close()
    (folder / ".partial").write_bytes(b"half")
    assert clean_up([row(folder, "killed")]).delete().gone == (str(folder),)
    assert not folder.exists()


def _foreign_file(folder: Path) -> None:
    (folder / "paper.tex").write_text("mine")


def _foreign_file_below(folder: Path) -> None:
    (folder / "scalars" / "notes.txt").write_text("mine")


def _hidden_file(folder: Path) -> None:
    (folder / ".bashrc").write_text("mine")


def _foreign_array(folder: Path) -> None:
    import zarr

    zarr.create_array(folder / "analysis" / "mean", shape=3, dtype="f4")[:] = 1


def _chunk_of_nothing(folder: Path) -> None:
    (folder / "mine" / "c").mkdir(parents=True)
    (folder / "mine" / "c" / "0").write_text("mine")


def _link(folder: Path) -> None:
    (folder / "data").symlink_to(folder.parent / "precious")


def _link_in_the_place_of_a_chunk(folder: Path) -> None:
    chunk = next(path for path in folder.rglob("0") if path.is_file())
    chunk.unlink()
    chunk.symlink_to(folder.parent / "precious" / "file")


def _link_in_the_place_of_a_group(folder: Path) -> None:
    (folder / "scalars").rename(folder.parent / "precious" / "scalars")
    (folder / "scalars").symlink_to(folder.parent / "precious" / "scalars")


def _pipe(folder: Path) -> None:
    os.mkfifo(folder / "pipe")


def _group_laid_into_the_list(folder: Path) -> None:
    (folder / "photos").mkdir()
    (folder / "photos" / "zarr.json").write_text("mine")
    root = json.loads((folder / "zarr.json").read_text())
    node = {"zarr_format": 3, "node_type": "group", "attributes": {}}
    root["consolidated_metadata"]["metadata"]["photos"] = node
    (folder / "zarr.json").write_text(json.dumps(root))


@pytest.mark.parametrize(
    "put",
    [
        _foreign_file,
        _foreign_file_below,
        _hidden_file,
        _foreign_array,
        _chunk_of_nothing,
        _link,
        _link_in_the_place_of_a_chunk,
        _link_in_the_place_of_a_group,
        _pipe,
        _group_laid_into_the_list,
    ],
)
@pytest.mark.parametrize("when", ["before", "after it was shown"])
def test_a_folder_that_holds_anything_else_stays_whole(
    tmp_path: Path, put: Callable[[Path], None], when: str
) -> None:
    folder = recorded(tmp_path / "run.zarr")
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("precious")
    asked = row(folder)
    if when == "before":
        put(folder)
    found = clean_up([asked])
    if when != "before":
        put(folder)
    before = everything(tmp_path)
    done = found.delete()
    assert not done.gone
    assert done.nbytes == 0
    assert str(folder) in done.stays
    after = everything(tmp_path)
    assert {one: after[one] for one in before if not one.endswith(".lock")} == {
        one: what for one, what in before.items() if not one.endswith(".lock")
    }


def test_a_record_behind_a_link_stays(tmp_path: Path) -> None:
    folder = recorded(tmp_path / "run.zarr")
    link = tmp_path / "link.zarr"
    link.symlink_to(folder)
    asked = {**row(folder), "run": str(link)}
    assert clean_up([asked]).stays == {str(link): "a link"}
    assert nbp.open_run(folder).finished


def test_what_is_no_record_or_another_run_s_stays(tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "zarr.json").write_text("{}")
    first = row(recorded(tmp_path / "run.zarr"))
    nbp.open_run(tmp_path / "run.zarr").pack(tmp_path / "run.zip")
    (tmp_path / "link.zip").symlink_to(tmp_path / "run.zip")
    with (
        zipfile.ZipFile(tmp_path / "run.zip") as packed,
        zipfile.ZipFile(tmp_path / "more.zip", "w") as more,
    ):
        for name in packed.namelist():
            more.writestr(name, packed.read(name))
        more.writestr("paper.tex", "mine")
    (tmp_path / "other.zip").write_bytes(b"PK\x05\x06" + b"\0" * 18)
    rows: list[dict[str, Any]] = [
        {"run": str(mine), "run_id": "x"},
        *(
            {"run": str(tmp_path / name), "run_id": first["run_id"]}
            for name in ("link.zip", "more.zip", "other.zip", "gone.zip", "\0")
        ),
        {"run": str(tmp_path / "run.zip"), "run_id": "another"},
        {"run": str(tmp_path / "run.zarr"), "run_id": "another"},
        {"run": str(tmp_path / "run.zarr")},
        {"run": "s3://bucket/run.zarr", "run_id": "x"},
        {"run": None},
        {"run": ""},
        {"run": str(tmp_path)},
        {"run": "/"},
    ]
    before = everything(tmp_path)
    found = clean_up(rows)
    assert not found.runs
    assert "another run is stored there now" in found.stays.values()
    assert found.delete().gone == ()
    assert everything(tmp_path) == before


# -------------------------------------------------------------------- checkpoints


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def trained(folder: Path, checkpoints: Path, steps: int = 4) -> Path:
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    trainer = train.Trainer(model, nn.functional.mse_loss, optimizer)
    loop = train.Loop(trainer)
    with loop.watch(store=folder):
        loop.add(train.Checkpoints(checkpoints, every=2))
        loop.run_steps([(torch.ones(4, 2), torch.zeros(4, 1))] * steps, steps)
    return folder


def test_its_own_checkpoints_go_with_it_and_are_shown(tmp_path: Path) -> None:
    folder = trained(tmp_path / "run.zarr", tmp_path / "checkpoints")
    found = clean_up([row(folder)])
    assert len(found.runs[0].checkpoints) == 2
    assert found.nbytes > sum(Path(one).stat().st_size for one in found.runs[0].checkpoints)
    assert found.delete().gone == (str(folder),)
    assert not (tmp_path / "checkpoints").exists()


@pytest.mark.slow
def test_checkpoints_of_others_in_the_same_folder_stay(tmp_path: Path) -> None:
    first = trained(tmp_path / "a.zarr", tmp_path / "checkpoints")
    second = trained(tmp_path / "b.zarr", tmp_path / "checkpoints")
    (tmp_path / "checkpoints" / "mine.pt").write_text("mine")
    assert clean_up([row(first)]).delete().gone == (str(first),)
    left = names(tmp_path / "checkpoints")
    assert {"mine.pt", "checkpoints.json"} < left
    assert {Path(one).name for one in clean_up([row(second)]).runs[0].checkpoints} == left - {
        "mine.pt",
        "checkpoints.json",
    }
    assert clean_up([row(second)]).delete().gone == (str(second),)
    assert names(tmp_path / "checkpoints") == {"mine.pt", "checkpoints.json"}


def _rewritten(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content)
    os.utime(path, (path.stat().st_mtime + 60,) * 2)


def _resized(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"more")


def _linked(path: Path) -> None:
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved"))


def _unlisted(path: Path) -> None:
    listed = path.with_name("checkpoints.json")
    found = json.loads(listed.read_text())
    found["checkpoints"] = [one for one in found["checkpoints"] if one["file"] != path.name]
    listed.write_text(json.dumps(found))


def _folder_is_a_link(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))
    path.parent.symlink_to(path.parent.with_name("elsewhere"))


@pytest.mark.parametrize("change", [_rewritten, _resized, _linked, _unlisted, _folder_is_a_link])
@pytest.mark.parametrize("when", ["before", "after it was shown"])
def test_a_checkpoint_that_is_no_longer_as_it_was_saved_stays(
    tmp_path: Path, change: Callable[[Path], None], when: str
) -> None:
    folder = trained(tmp_path / "run.zarr", tmp_path / "checkpoints", steps=2)
    (checkpoint,) = (tmp_path / "checkpoints").glob("*.pt")
    if when == "before":
        change(checkpoint)
    found = clean_up([row(folder)])
    if when == "before":
        assert found.runs[0].checkpoints == ()
        assert str(checkpoint) in str(found)
    else:
        change(checkpoint)
    content = checkpoint.read_bytes()
    assert found.delete().gone == (str(folder),)
    assert checkpoint.read_bytes() == content


def test_a_record_that_names_files_of_others_as_its_checkpoints_takes_none(tmp_path: Path) -> None:
    precious = tmp_path / "precious.pt"
    precious.write_text("precious")
    folder = tmp_path / "run.zarr"
    run = begun(folder)
    for path in (str(precious), f"{tmp_path}/x/../precious.pt", "precious.pt", "\0", "/etc/passwd"):
        run.controls.checkpoint_saved(1, path, 8)
    run.close()
    found = clean_up([row(folder)])
    assert found.runs[0].checkpoints == ()
    assert found.delete().gone == (str(folder),)
    assert precious.read_text() == "precious"
