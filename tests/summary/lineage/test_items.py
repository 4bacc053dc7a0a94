"""Dataset graph and lineage as a collector keeps them."""

from __future__ import annotations

import json
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import notebook_probe as nbp
from notebook_probe.summary.dataset_graph.describe import describe
from notebook_probe.train import Dataset
from tests.summary.conftest import Collect, Small, a_loop, images

DATA_KEYS = {"batch_size": 4, "data_size": 24}


def a_loader(n: int = 24) -> DataLoader[Any]:
    x, y = zip(*images(n, size=1), strict=True)
    return DataLoader(TensorDataset(torch.cat(x), torch.cat(y)), 4)


def accuracy(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return (output.argmax(1) == target).float().mean()


def test_a_loop_keeps_all_of_it_and_the_record_gives_it_back(
    collector: Collect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTEBOOK_PROBE_HYPER_CONFIG", json.dumps({"trial": 7, "lr": 9}))
    loop, data = a_loop(eval_metrics={"accuracy": accuracy}), a_loader()
    own = loop.add(collector(custom_lineage_data={"lr": 0.01}))
    loop.eval_every(a_loader(8))
    metrics = loop.run_epochs(data, 2)
    assert metrics is not None
    own.run.close()
    opened = nbp.open_run(own.run.location)
    lineage = opened.lineage()
    assert lineage["custom"] == {"trial": 7, "lr": 0.01}, "the user wins"
    expected = {"network": "Small", "loss": float(metrics["loss"]), "epoch": 2, "step_num": 12}
    assert {**expected, **DATA_KEYS}.items() <= lineage["train"].items()
    assert {*lineage["eval"]["metrics"]} == {"loss", "fn_loss", "accuracy"}
    assert (lineage["eval"]["step"], lineage["eval"]["data_size"]) == (12, 8)
    assert lineage["device"]["type"] == "cpu"
    assert opened.dataset_graph() == describe(data)
    noted = [event.step for event in opened.events if event.kind == "dataset_graph"]
    assert len(noted) == 1
    row = nbp.open_runs(own.run.location).lineage().rows[0]
    assert row["eval.accuracy"] == lineage["eval"]["metrics"]["accuracy"]
    assert (row["custom.trial"], row["train.batch_size"]) == (7, 4)


def test_a_loop_of_ones_own_keeps_what_its_run_knows(collector: Collect, tmp_path: Any) -> None:
    model = Small()
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    run = nbp.watch(model, optimizer, store=tmp_path / "own.zarr", probes=None)
    data = a_loader()
    with collector().attach(run, data=data):
        for x, y in data:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
    lineage = run.lineage()
    expected = {"network": "Small", "optimizer": "SGD", "learning_rate": 0.05, "step_num": 6}
    assert {**expected, **DATA_KEYS}.items() <= lineage["train"].items()
    assert "custom" not in lineage
    assert run.dataset_graph() == describe(data)
    run.close()


def test_a_training_that_ends_by_an_error_has_its_lineage_too(collector: Collect) -> None:
    loop = a_loop()
    own = loop.add(collector())

    def fail(loop: Any, metrics: Any) -> None:
        if loop.loop_step == 2:
            raise KeyError("x")

    loop.on_step(fail, priority=1)
    with pytest.raises(nbp.HookError):
        loop.run_epochs(images(4), 1)
    assert own.run.lineage()["train"]["step_num"] == 3


def test_several_evaluations_are_kept_beside_each_other(collector: Collect) -> None:
    loop = a_loop()
    own = loop.add(collector())
    loop.run_steps(images(4), 2)
    loop.eval(images(2))
    loop.eval(Dataset(images(1), name="test"))
    kept = own.run.lineage()["eval"]["metrics"]
    assert {*kept} == {"loss", "fn_loss", "test_loss", "test_fn_loss"}


def test_what_is_not_wanted_is_not_kept(collector: Collect) -> None:
    loop = a_loop()
    own = loop.add(
        collector(collect_specified_data={"collect_metric": True}, keep_default_action=False)
    )
    loop.run_epochs(images(4), 1)
    loop.eval(images(1))
    assert own.run.lineage() == {}
    with pytest.raises(nbp.NotLookedError):
        own.run.dataset_graph()


def test_what_cannot_be_kept_is_a_warning_and_training_goes_on(
    collector: Collect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NOTEBOOK_PROBE_HYPER_CONFIG", "{")
    loop = a_loop()
    own = loop.add(collector(custom_lineage_data={"a": 1}))
    with pytest.warns(nbp.RecordWarning, match="NOTEBOOK_PROBE_HYPER_CONFIG is left out"):
        loop.run_epochs(images(4), 1)
    assert loop.loop_step == 4
    assert own.run.lineage()["custom"] == {"a": 1}
