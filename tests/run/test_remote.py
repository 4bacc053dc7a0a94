"""Watching with a store that is not a folder of this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from torch import nn

import notebook_probe as nbp
from notebook_probe.errors import RecordWarning
from notebook_probe.record.store.remote.objects import ObjectEngine
from tests.models import floats, made, mlp, sgd, train
from tests.run.conftest import Watch
from tests.run.traces import n_hooks

batch = floats(5, 4)


@pytest.fixture
def store(tmp_path: Path) -> nbp.RemoteStore:
    return nbp.RemoteStore(f"memory://{tmp_path.name}", spool=tmp_path / "spool")


def test_a_watched_model_is_recorded_to_a_store(
    watch: Watch, model: nn.Module, store: nbp.RemoteStore, capsys: pytest.CaptureFixture[str]
) -> None:
    with watch(model, store=store) as run:
        assert capsys.readouterr().out == f"recording to {store}\n"
        train(model, sgd(model), batch, range(3))
        run.controls.settle()
        run.flush()
        assert nbp.open_run(store).data.sizes["step"] == 3
        assert run.status().problem == ""
        expected = run.series("0", "weight_norm").values
    opened = nbp.open_run(str(store))
    assert opened.finished
    assert opened.series("0", "weight_norm").values.tolist() == expected.tolist()


@pytest.mark.slow
def test_running_the_cell_again_goes_on_with_the_same_store(
    watch: Watch, model: nn.Module, store: nbp.RemoteStore, capsys: pytest.CaptureFixture[str]
) -> None:
    optimizer = sgd(model)
    first = watch(model, store=store)
    train(model, optimizer, batch, range(3))
    second = watch(model, store=store)
    assert first.closed
    assert f"continuing {store} after step 2" in capsys.readouterr().out
    train(model, optimizer, batch, range(3))
    second.close()
    assert nbp.open_run(store).series("0", "weight_norm").step.values.tolist() == list(range(6))


def test_a_store_out_of_reach_is_shown_and_training_goes_on(
    watch: Watch, model: nn.Module, store: nbp.RemoteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Any:
        raise ConnectionError("no route to host")

    run = watch(model, store=store)
    with monkeypatch.context() as away:
        away.setattr(ObjectEngine, "_put", fail)
        train(model, sgd(model), batch, range(3))
        with pytest.warns(RecordWarning, match="not shipped yet: ConnectionError: no route"):
            run.flush()
        assert "not shipped yet: ConnectionError: no route to host" in run.status().problem
        assert "no route to host" in str(run.status())
    assert n_hooks(model) > 0
    run.close()
    assert run.status().problem == ""
    assert nbp.open_run(store).data.sizes["step"] == 3


def test_a_finished_run_in_a_store_takes_values_for_old_steps(
    watch: Watch, model: nn.Module, store: nbp.RemoteStore
) -> None:
    with watch(model, store=store):
        train(model, sgd(model), batch, range(3))
    opened = nbp.open_run(store)
    opened.backfill("", "accuracy", [0, 2], [0.25, 0.5])
    again = nbp.open_run(store)
    assert again.series("", "accuracy").values.tolist() == [0.25, 0.5]
    assert again.finished


def test_a_rank_needs_a_place_that_can_be_parted(watch: Watch, model: nn.Module) -> None:
    from zarr.storage import MemoryStore

    with pytest.raises(nbp.RecordWriteError, match=r"cannot make rank_00003 in .*; give a URL or"):
        watch(model, store=MemoryStore(), rank=3)
    assert n_hooks(model) == 0


def test_a_zarr_store_will_do(watch: Watch, tmp_path: Path) -> None:
    from zarr.storage import MemoryStore

    model, store = made(mlp), MemoryStore()
    with watch(model, store=store) as run:
        train(model, sgd(model), batch, range(3))
    assert nbp.open_run(store).data.sizes["step"] == 3
    assert run.location == str(store)
