"""A cell that builds its model anew, watches it with a store of its own, and is run again."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.record.write.writer import RecordWriter
from tests.models import ConvNet, floats, made, mlp, sgd, train
from tests.run.traces import our_threads

batch = floats(5, 4)


class Looped(nn.Sequential):
    """A model that is part of a cycle, so that only the collector frees it."""

    def __init__(self) -> None:
        super().__init__(nn.Linear(4, 2))
        self.__dict__["myself"] = self


def cell(store: Path, build: type[nn.Module] | None = None, n_steps: int = 3) -> str:
    """What stands in the cell; its names go when it is run again. Returns where it recorded."""
    model = made(build or mlp)
    run = nbp.watch(model, store=store, probes={"*": ["weight_norm"]})
    train(model, sgd(model), batch, range(n_steps))
    return run.location


def steps_at(place: str | Path) -> list[int]:
    return [*map(int, nbp.open_run(place).data.step.values)]


@pytest.mark.slow
@pytest.mark.parametrize("build", [None, Looped])
def test_each_run_of_the_cell_has_a_record_of_its_own(
    build: type[nn.Module] | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "first.zarr"
    places = [cell(store, build) for _ in range(4)]
    gc.collect()
    nbp.watch(made(mlp), store=tmp_path / "other.zarr").close()  # waits for the last one's end
    names = [Path(place).name for place in places]
    assert names == ["first.zarr", "first-2.zarr", "first-3.zarr", "first-4.zarr"]
    assert [steps_at(place) for place in places] == [[0, 1, 2]] * 4
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"recording to {store}"
    assert lines[1].startswith(f"recording to {tmp_path / 'first-2.zarr'}, as {store} is of an")
    assert "resume=True continues it, overwrite=True replaces it" in lines[1]


@pytest.mark.slow
def test_a_model_that_is_still_there_is_watched_no_more(tmp_path: Path) -> None:
    model, again = made(mlp), made(mlp)
    runs = [nbp.watch(one, store=tmp_path / "r.zarr") for one in (model,)]
    train(model, sgd(model), batch, range(2))
    for one in (again, made(mlp)):
        runs.append(nbp.watch(one, store=tmp_path / "r.zarr"))
        train(one, sgd(one), batch, range(1))
        assert [run.closed for run in runs] == [True] * (len(runs) - 1) + [False]
    runs[-1].close()
    assert [len(steps_at(run.location)) for run in runs] == [2, 1, 1]


def test_an_end_that_has_begun_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that was freed ends its run on another thread, which still has the record's lock."""
    close, closing = RecordWriter.close, []

    def slowly(writer: RecordWriter) -> None:
        closing.append(writer.location)
        torch.ones(300, 300).matmul(torch.ones(300, 300)).sum()
        close(writer)

    monkeypatch.setattr(RecordWriter, "close", slowly)
    for _ in range(3):
        cell(tmp_path / "r.zarr")
    nbp.watch(made(mlp), store=tmp_path / "other.zarr").close()
    assert len(closing) == 4
    assert our_threads() == []


def test_a_record_without_a_step_is_used(tmp_path: Path) -> None:
    assert cell(tmp_path / "r.zarr", n_steps=0) == cell(tmp_path / "r.zarr")
    nbp.watch(made(mlp), store=tmp_path / "other.zarr").close()
    assert steps_at(tmp_path / "r.zarr") == [0, 1, 2]


def test_another_architecture_begins_a_record_of_its_own_too(tmp_path: Path) -> None:
    cell(tmp_path / "r.zarr")
    run = nbp.watch(made(ConvNet), store=tmp_path / "r.zarr")
    assert Path(run.location).name == "r-2.zarr"
    run.close()


@pytest.mark.slow
def test_the_rebuilt_model_goes_on_where_it_was_recorded(tmp_path: Path) -> None:
    cell(tmp_path / "r.zarr")
    model = made(mlp)
    for _ in range(3):
        run = nbp.watch(model, store=tmp_path / "r.zarr")
        assert Path(run.location).name == "r-2.zarr"
        train(model, sgd(model), batch, range(2))
    run.close()
    assert steps_at(tmp_path / "r-2.zarr") == [*range(6)]
    with nbp.watch(made(mlp), store=tmp_path / "r-2.zarr") as run:
        assert Path(run.location).name == "r-2-2.zarr"


def test_resume_goes_on_in_the_old_record(tmp_path: Path) -> None:
    cell(tmp_path / "r.zarr")
    model = made(mlp)
    with nbp.watch(model, store=tmp_path / "r.zarr", probes=None, resume=True) as run:
        assert run.status().step == 3
    with nbp.watch(model, store=tmp_path / "r.zarr", probes=None) as run:
        assert run.status().step == 3, "the same model goes on"


def test_overwrite_removes_the_old_record(tmp_path: Path) -> None:
    cell(tmp_path / "r.zarr", Looped)
    model = made(mlp)
    with nbp.watch(model, store=tmp_path / "r.zarr", probes=None, overwrite=True) as run:
        train(model, sgd(model), batch, range(1))
        run.log(loss=1.0)
    assert steps_at(tmp_path / "r.zarr") == [0]
    assert [path.name for path in tmp_path.iterdir()] == ["r.zarr"]


def test_overwrite_removes_nothing_but_a_record(tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "text").write_text("years of work")
    with pytest.raises(nbp.RecordFormatError, match="no record at"):
        nbp.watch(made(mlp), store=tmp_path / "thesis", overwrite=True)
    assert (tmp_path / "thesis" / "text").read_text() == "years of work"
    with pytest.raises(ValueError, match="only a folder of this machine"):
        nbp.watch(made(mlp), store="memory://r.zarr", overwrite=True)
    with pytest.raises(ValueError, match="overwrite=True and step=3"):
        nbp.watch(made(mlp), store=tmp_path / "r.zarr", overwrite=True, step=3)


def test_a_record_that_is_being_written_is_not_removed(tmp_path: Path) -> None:
    cell(tmp_path / "r.zarr")
    nbp.watch(made(mlp), store=tmp_path / "other.zarr").close()  # waits for the first one's end
    with RecordWriter.reopen(tmp_path / "r.zarr"), pytest.raises(nbp.RecordLockedError):
        nbp.watch(made(mlp), store=tmp_path / "r.zarr", overwrite=True)
    assert steps_at(tmp_path / "r.zarr") == [0, 1, 2]


def test_each_rank_finds_its_place_in_the_same_new_folder(tmp_path: Path) -> None:
    for _ in range(2):
        for rank in range(2):
            model = made(mlp)
            with nbp.watch(model, store=tmp_path / "job", probes={"0": ["weight_norm"]}, rank=rank):
                train(model, sgd(model), batch, range(2))
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.glob("*/rank_*")}
    assert found == {f"{job}/rank_0000{rank}" for job in ("job", "job-2") for rank in range(2)}


def test_a_store_that_is_no_folder_says_what_to_do() -> None:
    store = "memory://rebuilt.zarr"
    model = made(mlp)
    with nbp.watch(model, store=store, probes={"0": ["weight_norm"]}):
        train(model, sgd(model), batch, range(2))
    with pytest.raises(nbp.RecordMismatchError, match="resume=True continues it"):
        nbp.watch(made(mlp), store=store)
