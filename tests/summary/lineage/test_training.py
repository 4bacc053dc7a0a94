"""What came of a training, as plain values."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset, random_split

import notebook_probe as nbp
from notebook_probe.summary.dataset_graph.describe import describe
from notebook_probe.summary.lineage.data import DataFacts, data_facts
from notebook_probe.summary.lineage.device import device_lineage
from notebook_probe.summary.lineage.sources import training_of_loop, training_of_run
from notebook_probe.summary.lineage.training import TrainingFacts, train_lineage
from notebook_probe.train import Loop, Trainer
from tests.train.conftest import small_model, watched

__all__ = ["watched"]

ENTRIES = [
    *("network", "loss_function", "loss", "optimizer", "learning_rate", "epoch", "step_num"),
    *("parallel_mode", "device_num", "batch_size", "data_path", "data_size"),
    *("model_path", "model_size"),
]

Watched = Callable[..., nbp.Run]


def loader(n: int = 24, size: int = 4) -> DataLoader[Any]:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(n, 3, generator=generator)
    return DataLoader(TensorDataset(x, torch.randint(0, 2, (n,), generator=generator)), size)


def a_loop() -> Loop:
    model = small_model()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    return Loop(Trainer(model, nn.functional.cross_entropy, optimizer), progress=False)


def test_of_nothing_every_entry_is_there_and_unknown() -> None:
    told = train_lineage(TrainingFacts())
    assert [*told] == ENTRIES
    known = {name: value for name, value in told.items() if value is not None}
    assert known == {"parallel_mode": "stand_alone", "device_num": 1}


def test_a_loop_tells_all_of_it(tmp_path: Path) -> None:
    loop, data = a_loop(), loader()
    metrics = loop.run_epochs(data, 3)
    loop.save_checkpoint(tmp_path / "kept")
    told = train_lineage(training_of_loop(loop, describe(data)))
    assert metrics is not None
    place = loop.checkpoints[-1].path
    assert told == {
        "network": "Sequential",
        "loss_function": "cross_entropy",
        "loss": float(metrics["loss"]),
        "optimizer": "AdamW",
        "learning_rate": 1e-2,
        "epoch": 3,
        "step_num": 18,
        "parallel_mode": "stand_alone",
        "device_num": 1,
        "batch_size": 4,
        "data_path": None,
        "data_size": 24,
        "model_path": place,
        "model_size": Path(place).stat().st_size,
    }
    json.dumps(told, allow_nan=False)


def test_a_bare_run_tells_what_its_record_and_its_optimizers_know(tmp_path: Path) -> None:
    model = small_model()
    groups: list[dict[str, Any]] = [
        {"params": model[0].parameters(), "lr": 0.5},
        {"params": model[3].parameters()},
    ]
    optimizer = torch.optim.SGD(groups, 0.1)
    data = loader()
    with nbp.watch(model, optimizer, store=tmp_path / "r.zarr", probes=None) as run:
        for _ in range(2):
            for x, y in run.batches(data):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
                run.log(loss=loss)
        run.controls.settle()
        run.flush()
        told = train_lineage(training_of_run(run, 12, describe(data), model))
    assert told["loss"] == pytest.approx(loss.item(), rel=1e-6)
    expected: dict[str, Any] = {
        "network": "Sequential",
        "optimizer": "SGD",
        "learning_rate": [0.5, 0.1],
    }
    expected |= {"epoch": 2, "step_num": 12, "batch_size": 4, "data_size": 24}
    assert expected.items() <= told.items()
    assert told["loss_function"] is told["model_path"] is told["model_size"] is None


def test_a_loss_that_is_not_finite_is_told_in_words() -> None:
    assert train_lineage(TrainingFacts(loss=math.nan))["loss"] == "nan"
    assert train_lineage(TrainingFacts(loss=-math.inf))["loss"] == "-inf"


def test_several_optimizers_are_named_each_once() -> None:
    models = [nn.Linear(1, 1) for _ in range(3)]
    kinds = (torch.optim.SGD, torch.optim.Adam, torch.optim.Adam)
    optimizers = [kind(one.parameters(), lr=0.1) for kind, one in zip(kinds, models, strict=True)]
    told = train_lineage(TrainingFacts(optimizers=optimizers))
    assert (told["optimizer"], told["learning_rate"]) == ("SGD, Adam", 0.1)


def test_what_is_odd_in_one_entry_takes_no_other_with_it() -> None:
    class Odd(torch.optim.SGD):
        param_groups = property(lambda self: 1 / 0, lambda self, value: None)

    odd = Odd.__new__(Odd)
    told = train_lineage(TrainingFacts(network="Net", optimizers=[odd]))
    assert (told["network"], told["optimizer"], told["learning_rate"]) == ("Net", "Odd", None)


def test_models_of_several_devices_say_how_they_are_trained() -> None:
    wrapped = nn.DataParallel(nn.Linear(2, 1))
    assert train_lineage(TrainingFacts(model=wrapped))["parallel_mode"] == "data_parallel"


def test_of_a_part_of_a_data_set_the_part_is_counted() -> None:
    whole = TensorDataset(torch.ones(100))
    part, _ = random_split(whole, [30, 70])
    assert data_facts(describe(DataLoader(part, 7))) == DataFacts(7, 30, None)
    assert data_facts(describe([1, 2])) == DataFacts() == data_facts(None)


@pytest.mark.parametrize("kind", [list, tuple])
def test_a_loader_of_a_plain_list_has_as_many_samples(kind: type) -> None:
    samples = kind((torch.ones(2), 1) for _ in range(40))
    assert data_facts(describe(DataLoader(samples, 8))) == DataFacts(8, 40, None)
    assert data_facts(describe(DataLoader(Subset(samples, range(6)), 2))) == DataFacts(2, 6, None)


def test_a_checkpoint_that_is_elsewhere_has_no_size(tmp_path: Path) -> None:
    told = train_lineage(TrainingFacts(checkpoint="s3://bucket/kept/1.safetensors"))
    assert (told["model_path"], told["model_size"]) == ("s3://bucket/kept/1.safetensors", None)
    (tmp_path / "a").write_bytes(b"123")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c").write_bytes(b"4567")
    assert train_lineage(TrainingFacts(checkpoint=str(tmp_path)))["model_size"] == 7


def test_the_device_is_that_of_the_first_parameter() -> None:
    told = device_lineage(nn.Linear(1, 1))
    assert told["type"] == "cpu"
    assert told["count"] == 1
    assert told["threads"] == torch.get_num_threads()
    assert device_lineage(None) == device_lineage(nn.ReLU()) == told
    meta = device_lineage(nn.Linear(1, 1, device="meta"))
    assert (meta["type"], meta["name"], meta["count"]) == ("meta", None, None)


# ------------------------------------------------------------------------------ in the record


def test_lineage_is_kept_part_by_part_and_read_again(watched: Watched) -> None:
    loop = a_loop()
    run = watched(loop)
    assert run.lineage() == {}
    loop.run_epochs(loader(), 1)
    train = train_lineage(training_of_loop(loop))
    run.controls.keep_lineage(train=train, custom={"trial": 7})
    run.controls.keep_lineage(custom={"trial": 8}, eval={"metrics": {}})
    expected = {"train": train, "custom": {"trial": 8}, "eval": {"metrics": {}}}
    assert run.lineage() == expected
    assert run.annotations == {}
    run.controls.keep_lineage(custom={"a": "ü" * 100_000})
    with pytest.raises(ValueError, match="at most 400000 are kept"):
        run.controls.keep_lineage(more={"a": "x" * 300_000})
    run.controls.keep_lineage(custom={"trial": 8})
    run.close()
    opened = nbp.open_run(run.location)
    assert opened.lineage() == expected
    with pytest.raises(nbp.ClosedRunError):
        run.controls.keep_lineage(custom={})


def test_a_dataset_graph_is_an_event_that_is_read_again(watched: Watched) -> None:
    loop, data = a_loop(), loader()
    run = watched(loop)
    with pytest.raises(nbp.NotLookedError, match="no dataset graph is recorded"):
        run.dataset_graph()
    graph = describe(data)
    loop.run_epochs(data, 1)
    run.note("dataset_graph", "the data", graph=graph.plain())
    assert run.dataset_graph() == graph
    run.close()
    assert nbp.open_run(run.location).dataset_graph() == graph
