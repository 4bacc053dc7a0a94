"""Two processes that train one experiment together: a record each, and one run to be found."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import notebook_probe as nbp
from notebook_probe.experiment import train, train_from_params
from notebook_probe.experiment.places import ExperimentFolder
from notebook_probe.experiment.saving.units import read_units
from notebook_probe.home import HOME
from tests.distributed.pair import Pair

pytestmark = pytest.mark.xdist_group("pair")  # one pair serves them all

UNITS = 6


class OwnPart:
    """Batches of this process alone, the same in each pass."""

    def __init__(self, batch_size: int) -> None:
        draw = torch.Generator().manual_seed(dist.get_rank())
        self._batches = [
            {
                "x": torch.randn(batch_size, 3, generator=draw),
                "labels": torch.zeros(batch_size).long(),
            }
            for _ in range(4)
        ]

    def __iter__(self) -> Iterator[Mapping[str, Tensor]]:
        return iter(self._batches)

    def __len__(self) -> int:
        return len(self._batches)


def parallel() -> nn.Module:
    return DistributedDataParallel(nn.Linear(3, 2))


def accuracy(inputs: Mapping[str, Tensor], output: Tensor) -> dict[str, Tensor]:
    return {"accuracy": (output.argmax(1) == inputs["labels"]).float().mean()}


def trained(rank: int, home: str, units: int) -> tuple[list[str], list[list[float]]]:
    """Ids of what was saved, and the weights."""
    os.environ[HOME] = home
    data = {"func": OwnPart, "batch_size": 4}
    built = train_from_params(
        {"exp_id": "pair", "save_metrics_freq": 1, "save_valid_freq": 2, "save_filters_freq": 3},
        {"func": parallel, "seed": 3},
        {"data_params": data, "num_steps": units},
        validation_params={"own": {"data_params": data, "targets": {"func": accuracy}}},
        skip_check=True,
        dont_run=True,
    )
    ids = train(**built).ids["model_0"]
    dist.barrier()
    return ids, [value.tolist() for value in built["trainings"][0].model.parameters()]


def test_two_processes_train_one_experiment_and_go_on_with_it(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, other = str(tmp_path / "home"), str(tmp_path / "whole")
    monkeypatch.setenv(HOME, home)  # what else is known to this process is none of its
    first = pair.run(trained, home, 4)
    then = pair.run(trained, home, UNITS)
    whole = pair.run(trained, other, UNITS)
    assert then[0][1] == then[1][1] == whole[0][1], "as if it had never stopped"
    folder = Path(home, "experiments", "pair")
    assert sorted(path.name for path in (folder / "checkpoints").glob("*.pt")) == [
        "step_00000000.pt",
        "step_00000003.pt",
        "step_00000006.pt",
    ]
    units = read_units(ExperimentFolder(folder.parent, exp_id="pair"))
    assert [unit.step for unit in units] == [*range(UNITS + 1)]
    assert [unit.id for unit in units[:4]] == first[0][0][:4]
    job = nbp.open_run(folder / "record.zarr")
    assert [*job.ranks] == [0, 1]  # type: ignore[attr-defined]
    assert job.series("", "loss").shape == (2, UNITS)
    with nbp.catalogue(tmp_path / "index.sqlite", root=home) as cat:
        (row,) = cat.runs()
        assert (row["run"], row["ranks"], row["name"]) == (str(folder / "record.zarr"), 2, "pair")
        assert row["checkpoints"] == 3
        both = cat.runs(ranks=True, sort="rank")
        assert [(one["rank"], one["ranks"]) for one in both] == [(0, 2), (1, 2)]
