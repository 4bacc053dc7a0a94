"""Of a run that is cleaned up nothing remains, and whatever is beside it stays as it is."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import notebook_probe as nbp
from notebook_probe.catalogues.marks import change, clean_up
from notebook_probe.home import HOME
from notebook_probe.record.store.lock import Lock
from notebook_probe.record.store.noted import noted
from tests.catalogues.build import recorded
from tests.catalogues.marks.recorded import row
from tests.catalogues.marks.test_clean_up import everything


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv(HOME, str(folder))
    return folder


def below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


def job(folder: Path) -> dict[str, Any]:
    """A job of two ranks, and its row."""
    for rank in range(2):
        recorded(folder / f"rank_0000{rank}")
    return {**row(folder / "rank_00000"), "run": str(folder)}


def test_all_ranks_of_a_job_go_with_its_folder(tmp_path: Path) -> None:
    asked = job(tmp_path / "job.zarr")
    change(tmp_path / "job.zarr", lambda marks: marks.tagged(["bad"]))
    assert len([*noted()]) == 2
    found = clean_up([asked])
    assert found.nbytes == sum(len(content) for content in everything(tmp_path).values())
    assert found.delete().gone == (str(tmp_path / "job.zarr"),)
    assert below(tmp_path) == set()
    assert [*noted()] == [], "nor does anything tell where it was"


@pytest.mark.parametrize("what", ["written", "foreign", "one more rank", "link", "below a link"])
def test_a_job_goes_with_all_its_ranks_or_not_at_all(tmp_path: Path, what: str) -> None:
    folder = tmp_path / "job.zarr"
    asked = job(folder)
    found = clean_up([asked])
    held = Lock(folder / "rank_00001") if what == "written" else None
    if what == "foreign":
        (folder / "paper.tex").write_text("mine")
    if what == "one more rank":
        recorded(folder / "rank_00002")
    if what == "link":
        folder.rename(tmp_path / "elsewhere")
        folder.symlink_to(tmp_path / "elsewhere")
    if what == "below a link":
        (folder / "rank_00001").rename(tmp_path / "elsewhere")
        (folder / "rank_00001").symlink_to(tmp_path / "elsewhere")
    before = {name: one for name, one in everything(tmp_path).items() if not name.endswith("lock")}
    done = found.delete()
    assert not done.gone
    assert str(folder) in done.stays
    assert before.items() <= everything(tmp_path).items()
    if held is not None:
        held.release()


def test_a_packed_record_goes_as_a_file_and_the_folder_that_it_was_packed_from_stays(
    tmp_path: Path,
) -> None:
    folder = recorded(tmp_path / "run.zarr")
    packed = nbp.open_run(folder).pack(tmp_path / "run.zarr.zip")
    before = everything(folder)
    found = clean_up([{**row(folder), "run": str(packed)}])
    assert found.nbytes == packed.stat().st_size
    assert found.delete().gone == (str(packed),)
    assert not packed.exists()
    assert everything(folder) == before


def data(batch_size: int) -> list[dict[str, torch.Tensor]]:
    return [{"x": torch.ones(batch_size, 2), "labels": torch.zeros(batch_size).long()}] * 2


def network() -> nn.Module:
    return nn.Linear(2, 2)


def test_nothing_remains_of_an_experiment(tmp_path: Path, own_home: Path) -> None:
    for name in ("first", "second"):
        nbp.train_from_params(
            {"exp_id": name, "save_filters_freq": 2, "cache_filters_freq": 1},
            {"func": network},
            {"data_params": {"func": data, "batch_size": 2}, "num_steps": 3},
            skip_check=True,
        )
    assert {"checkpoints", "recent", "record.zarr"} <= below(own_home / "experiments/first")
    other = everything(own_home / "experiments/second")
    with nbp.catalogue(tmp_path / "index.sqlite") as cat:
        found = cat.clean_up("name == 'first'")
        assert len(found.runs[0].checkpoints) == 4
        assert len(found.delete().gone) == 1
        assert [one["name"] for one in cat.runs()] == ["second"]
    assert not (own_home / "experiments/first").exists()
    assert len([*noted()]) == 1
    assert everything(own_home / "experiments/second") == other


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One run of each kind, to be copied: in a folder, of two ranks, packed."""
    folder = tmp_path_factory.mktemp("kinds")
    job(folder / "job.zarr")
    one = recorded(folder / "one.zarr")
    packed = nbp.open_run(one).pack(folder / "packed.zip")
    return {"one": one, "job": folder / "job.zarr", "packed": packed}


NAMES = st.sampled_from(
    ["zarr.json", "rank_00007", "c", "0", ".lock", ".marks.x", "notes.txt", "ä\n ", "record.zarr",
     "-rf", "..a", "checkpoints.json", "%2e%2e", "run.zarr", "rank_00000", "every_1"]
)  # fmt: skip
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)


@settings(max_examples=60, deadline=None)
@given(
    kind=st.sampled_from(["one", "job", "packed"]),
    inside=st.lists(PATHS, max_size=2),
    beside=st.lists(PATHS, max_size=3),
    is_linked=st.booleans(),
)
def test_whatever_lies_in_or_beside_a_run_stays_byte_for_byte(
    kinds: dict[str, Path], kind: str, inside: list[str], beside: list[str], is_linked: bool
) -> None:
    with tempfile.TemporaryDirectory() as name:
        top = Path(name).resolve()
        place = top / "runs" / kinds[kind].name
        place.parent.mkdir()
        (shutil.copy2 if kind == "packed" else shutil.copytree)(kinds[kind], place)
        first = place / "rank_00000" if kind == "job" else place
        asked = {**row(first), "run": str(place)}
        own = set(everything(top)) if kind != "packed" else {str(place)}
        precious = top / "precious"
        precious.write_text("precious")
        put = [path for path in (top / "runs" / one for one in beside) if path != place]
        put += [place / one for one in inside] if kind != "packed" else []
        foreign = {path for path in put if _laid(path, precious, is_linked)}
        before = everything(top)
        done = clean_up([asked]).delete()
        after = everything(top)
        if done.gone:
            assert not {path for path in foreign if place in path.parents and not _is_beside(path)}
            assert {one: before[one] for one in before if one not in own and one in after} == after
            assert not place.exists()
        else:
            assert {**after, **before} == after, "all or nothing"
        assert precious.read_text() == "precious"


def _is_beside(path: Path) -> bool:
    """What a killed writer leaves in a record's own folder is the record's."""
    return path.name in (".lock", ".marks.x")


def _laid(path: Path, precious: Path, is_linked: bool) -> bool:
    """Lay something of others there, unless it is taken."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists() or path.is_symlink():
            return False
        path.symlink_to(precious) if is_linked else path.write_text("mine")
    except OSError:  # what is above it is a file
        return False
    return True
