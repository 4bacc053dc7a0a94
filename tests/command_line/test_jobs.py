"""A job of two ranks in a terminal: one run wherever a run is named."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from notebook_probe.home import HOME

Said = Callable[..., tuple[int, str, str]]


@pytest.fixture
def job(lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv(HOME, str(tmp_path / "home"))
    folder = tmp_path / "runs" / "job.zarr"
    for rank, name in enumerate(("slow", "fast")):
        shutil.copytree(lab / f"{name}.zarr", folder / f"rank_0000{rank}")
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def test_a_job_is_one_line_that_says_how_many_ranks_it_has_and_each_rank_can_be_asked_for(
    said: Said, job: Path
) -> None:
    asked = ["runs", "--root", str(job.parent), "--json", "--columns", "rank*,config.lr"]
    (row,) = json.loads(said(*asked)[1])
    assert (row["run"], row["ranks"], row["config.lr"]) == (str(job), 2, 1e-4)
    both = json.loads(said(*asked, "--ranks", "--sort", "rank")[1])
    assert [(one["rank"], one["ranks"]) for one in both] == [(0, 2), (1, 2)]
    assert "ranks" in said("runs", "--root", str(job.parent))[1].splitlines()[0].split()


def test_it_is_shown_compared_and_exported_as_a_run(said: Said, job: Path, tmp_path: Path) -> None:
    told = json.loads(said("show", str(job), "--json")[1])
    assert (told["run"], told["ranks"], told["config.lr"]) == (str(job), 2, 1e-4)
    assert "rank" not in told
    code, out, err = said("compare", str(job), str(job / "rank_00001"), "--quantity", "grad_norm")
    assert (code, err) == (0, "")
    assert "config.lr  0.0001  0.01" in out
    assert said("export", str(job), "--to", str(tmp_path / "x.json"))[0] == 0
    (row,) = json.loads((tmp_path / "x.json").read_text())
    assert row["ranks"] == 2


def test_its_clean_up_leaves_nothing(said: Said, job: Path) -> None:
    where = ("clean-up", "--root", str(job.parent), "--where", "name == 'slow'", "--delete")
    assert said(*where)[1].splitlines()[-1].startswith("1 run deleted")
    assert not job.exists()
