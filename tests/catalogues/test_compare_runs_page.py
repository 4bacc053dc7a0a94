"""The page on comparing runs does what it says, block after block."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.home import HOME

PAGE = Path(__file__).parents[2] / "docs" / "how_to" / "compare_runs.md"


def train(folder: Path, name: str, lr: float) -> None:
    torch.manual_seed(0)
    parts = {"conv1": nn.Linear(2, 8), "relu": nn.ReLU(), "conv3": nn.Linear(8, 1)}
    model = nn.Sequential()
    for part, module in parts.items():
        model.add_module(part, module)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    config = {"lr": lr, "model": {"depth": 4}}
    with nbp.watch(
        model, optimizer, store=folder / f"{name}.zarr", name=name, config=config
    ) as run:
        for _ in range(20):
            optimizer.zero_grad()
            loss = (model(torch.ones(4, 2)) - 1).square().mean()
            loss.backward()
            optimizer.step()
            run.log({"loss": loss.item(), "eval_accuracy": 1 - lr})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*loop.*:DeprecationWarning")
def test_every_block_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HOME, str(tmp_path / "home"))
    for n, lr in ((2, 5e-2), (3, 1e-3), (4, 3e-3)):
        train(tmp_path, f"digits-{n}", lr)
    names: dict[str, Any] = {}
    for block in re.findall(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.M):
        exec(compile(block, str(PAGE), "exec"), names)  # the page's own
    plt.close("all")
    assert [row["name"] for row in names["table"]] == ["digits-3", "digits-4"]
    told = nbp.runs("tags has 'paper' and note has 'figure 2'")
    assert [row["tags"] for row in told] == [["paper"]]
    assert not names["found"].runs
