"""Groups of runs by a column: the mean of their losses, its ends, and how many there are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import notebook_probe as nbp
from notebook_probe.explorer.runs_table.grouping import MOST_GROUPS, RunGroups, group_line
from notebook_probe.explorer.runs_table.reading import Records

LOSSES = {"a": (0.1, 3.0), "b": (0.1, 5.0), "c": (0.01, 1.0)}
"""Run to its setting and loss at step 0; each step adds 1."""


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("runs")
    found: list[dict[str, Any]] = []
    for name, (lr, first) in LOSSES.items():
        model = torch.nn.Linear(1, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr)
        place = str(folder / f"{name}.zarr")
        with nbp.watch(model, optimizer, store=place, probes=None) as run:
            for step in range(4):
                model(torch.ones(1, 1)).sum().backward()
                optimizer.step()
                run.log(loss=first + step)
        found.append({"run": place, "lr": lr})
    return [*found, {"run": str(folder / "gone.zarr"), "lr": 0.1}, {"run": str(folder), "lr": None}]


def test_runs_of_one_value_are_a_group_with_mean_ends_and_number(
    rows: list[dict[str, Any]],
) -> None:
    groups = RunGroups(Records(), "lr", rows)
    while not groups.is_whole:
        groups.read_some()
    message = groups.message()
    assert (message["by"], message["scalar"]) == ("lr", "loss")
    assert (message["n_read"], message["n_runs"]) == (4, 4), "a run without a value is in none"
    low, high = message["groups"]
    assert [low["text"], high["text"]] == ["0.01", "0.1"]
    assert [low["n"], high["n"]] == [1, 2], "one cannot be read"
    steps = np.asarray(high["x"], float)
    assert (steps[0], steps[-1]) == (0, 3)
    np.testing.assert_allclose(np.asarray(high["mean"], float), 4 + steps)
    np.testing.assert_allclose(np.asarray(high["low"], float), 3 + steps)
    np.testing.assert_allclose(np.asarray(high["high"], float), 5 + steps)
    assert high["last"] == 7
    assert high["std"] == pytest.approx(np.std([6, 8], ddof=1))
    assert low["std"] is None


def test_a_shorter_run_counts_as_far_as_it_goes() -> None:
    long = np.arange(11.0), np.full(11, 2.0)
    short = np.arange(6.0), np.full(6, 4.0)
    group = group_line("x", [long, short])
    mean = np.asarray(group["mean"], float)
    steps = np.asarray(group["x"], float)
    assert set(mean[steps <= 5]) == {3.0}
    assert set(mean[steps > 5]) == {2.0}
    assert group["last"] == 3.0


def test_more_values_than_can_be_told_apart_are_refused() -> None:
    rows = [{"run": "none", "lr": k} for k in range(MOST_GROUPS + 1)]
    groups = RunGroups(Records(), "lr", rows)
    assert groups.is_whole
    assert groups.message()["problem"] == "13 values of lr; at most 12 can be distinguished"
