"""What a record tells of its run as a whole, with a collected lineage and without."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import notebook_probe as nbp
from notebook_probe.lineage.progress import duration_s, loss_of
from notebook_probe.lineage.row import row_of
from notebook_probe.record import RecordWriter, Variable
from notebook_probe.record.format.missing import as_measured
from notebook_probe.record.format.schema import LOGGED_BY
from notebook_probe.record.format.source import ROOT, Event
from tests.compare.made import made
from tests.models import floats, mlp, sgd, train
from tests.models import made as a_model


def test_a_bare_run_tells_what_it_has(tmp_path: Path) -> None:
    model = a_model(mlp)
    optimizer = sgd(model)
    config = {"lr": 0.1, "net": {"depth": 2}}
    run = nbp.watch(model, optimizer, store=tmp_path / "r.zarr", probes=None, config=config)
    for step in range(4):
        loss = model(floats(5, 4)(step)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.log(loss=4.0 - step if step < 3 else 2.5)
        run.log({"eval_accuracy": 0.1 * step, "val/top5": 0.2 * step}, phase="eval")
    run.annotate(purpose="a test")
    run.close()
    row = row_of(nbp.open_run(run.location))
    expected = {
        "run": run.location,
        "state": "finished",
        "steps": 4,
        "alerts": 0,
        "loss.first": 4.0,
        "loss.last": 2.5,
        "loss.best": 2.0,
        "config.lr": 0.1,
        "config.net.depth": 2,
        "annotations.purpose": "a test",
        "packages.torch": torch.__version__,
    }
    assert {name: row[name] for name in expected} == expected
    assert row["eval.accuracy"] == pytest.approx(0.3)
    assert row["eval.val/top5"] == pytest.approx(0.6)
    assert 0 < row["duration_s"] < 600
    json.dumps(row)


def lineage_of(**parts: Any) -> dict[str, str]:
    return {"lineage": json.dumps(parts)}


def test_lineage_has_columns_by_part_and_metrics_their_own_names() -> None:
    run = made("a", logged={"loss": [3.0, 1.0, 2.0]}, config={"lr": 1})
    run.attrs |= lineage_of(
        train={"learning_rate": [0.1, 0.2], "loss": "nan", "network": None},
        eval={"metrics": {"accuracy": 0.5, "by": {"class": 1}}, "data_size": 10},
        custom={"trial": 7},
        device={"type": "cpu"},
        mine={"x": 1},
    )
    row = row_of(run)
    expected = {
        "steps": 3,
        "config.lr": 1,
        "custom.trial": 7,
        "train.learning_rate": [0.1, 0.2],
        "train.network": None,
        "eval.accuracy": 0.5,
        "eval.by.class": 1,
        "eval_data_size": 10,
        "device.type": "cpu",
        "mine.x": 1,
    }
    assert {name: row[name] for name in expected} == expected
    assert math.isnan(row["train.loss"])
    names = [*row]
    assert names.index("config.lr") < names.index("custom.trial") < names.index("train.loss")


@pytest.mark.parametrize(
    ("losses", "expected"),
    [
        ([3.0, 1.0, 2.0], (3.0, 2.0, 1.0)),
        ([math.nan, 1.0, math.inf], (math.nan, math.nan, 1.0)),
        ([math.nan], (math.nan, math.nan, math.nan)),
        ([2.0], (2.0, 2.0, 2.0)),
        ([*np.linspace(5, 1, 5000), 9.0], (5.0, 9.0, 1.0)),
    ],
)
def test_first_last_and_best_loss(losses: list[float], expected: tuple[float, ...]) -> None:
    found = loss_of(made("a", logged={"loss": losses, "lr": losses}))
    assert found == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("lost", [[], [0], [2999], [3], [2990], [0, 1500, 2999]], ids=str)
def test_of_a_long_record_the_loss_is_that_of_its_rows(lost: list[int], tmp_path: Path) -> None:
    losses = np.linspace(5, 1, 3000, dtype=np.float32)
    losses[lost] = np.nan
    with RecordWriter(tmp_path, title="long", modules=[], ring_bytes=1 << 20) as writer:
        stream = writer.stream("every_1")
        stream.extend([ROOT], [Variable("loss", "1", LOGGED_BY)])
        for step, loss in enumerate(as_measured(losses)):
            stream.record(step, step, np.full((1, 1), loss))
    expected = (losses[0], losses[-1], np.nanmin(losses))
    assert loss_of(nbp.open_run(tmp_path)) == pytest.approx(expected, nan_ok=True)


def test_what_there_is_nothing_of_is_unknown() -> None:
    row = row_of(made("a"))
    assert (row["steps"], row["duration_s"], row["alerts"]) == (0, None, 0)
    assert not [name for name in row if name.startswith(("loss", "eval", "config"))]
    other = row_of(made("a", {"m": [1.0]}, logged={"lr": [1.0]}))
    assert math.isnan(other["loss.last"])


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"train": 3}', '{"eval": {"metrics": 3}}'])
def test_a_damaged_lineage_is_none(text: str) -> None:
    run = made("a", logged={"loss": [1.0]})
    run.attrs["lineage"] = text
    assert not [name for name in row_of(run) if name.startswith(("train.", "eval."))]


def test_alerts_are_counted_and_time_is_from_the_beginning_to_the_last_row() -> None:
    run = made("a", logged={"loss": [1.0, 2.0]}, seconds=[0.0, 90.0])
    run.events = (Event(1, 0, "alert", "x"), Event(1, 0, "attach", "y"), Event(1, 0, "alert", "z"))
    assert row_of(run)["alerts"] == 2
    begun = run.streams["logged"].times(0, 1)[0] - 30_000
    created = np.datetime64(int(begun), "ms").item().isoformat() + "+00:00"
    assert duration_s(run, {"created": created}) == 120.0
    assert math.isnan(duration_s(run, {}))


def _trained(place: Path, lr: float, seed: int) -> None:
    torch.manual_seed(seed)
    model = a_model(mlp)
    optimizer = sgd(model)
    with nbp.watch(model, optimizer, store=place, probes=None, config={"lr": lr}) as run:
        train(model, optimizer, floats(5, 4), range(2))
        run.log(loss=lr)


def test_many_records_are_one_table(tmp_path: Path) -> None:
    for place, lr in (("a", 0.3), ("b", 0.1), ("c", 0.2)):
        _trained(tmp_path / f"{place}.zarr", lr, 0)
    study = nbp.open_runs(tmp_path / "*.zarr")
    table = study.lineage()
    assert table.sort("config.lr")["run"] == [str(tmp_path / f"{one}.zarr") for one in "bca"]
    assert table["steps"] == [2, 2, 2]
    part = study.isel(run=[2, 0]).lineage()
    assert part["config.lr"] == [0.2, 0.3], "a part of the study has its own rows"
    assert study.isel(run=1).lineage()["config.lr"] == [0.1]
    assert table.where("config.lr", lambda lr: lr > 0.1).sort("loss.last")["config.lr"] == [
        0.2,
        0.3,
    ]


def test_a_record_that_is_damaged_or_gone_is_left_out_with_a_warning(tmp_path: Path) -> None:
    for place in "abc":
        _trained(tmp_path / f"{place}.zarr", 0.1, 0)
    study = nbp.open_runs(tmp_path / "*.zarr")
    shutil.rmtree(tmp_path / "a.zarr")
    for chunk in (tmp_path / "b.zarr").glob("scalars/*/step/c/*"):
        chunk.write_bytes(b"no chunk at all, and long enough to be one")
    with pytest.warns(nbp.RecordWarning, match="left out") as told:
        table = study.lineage()
    assert table["run"] == [str(tmp_path / "c.zarr")]
    said = [str(one.message).partition(";")[0] for one in told]  # what lies beside comes after it
    assert [place for one in said for place in "ab" if f"{place}.zarr" in one] == ["a", "b"]


def test_json_of_a_thousand_levels_is_no_lineage() -> None:
    run = made("a", logged={"loss": [1.0]})
    run.attrs["lineage"] = '{"custom":' * 100_000 + "1" + "}" * 100_000
    assert row_of(run)["loss.last"] == 1.0
