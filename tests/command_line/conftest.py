"""Three runs in a catalogue of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.command_line import main
from notebook_probe.home import HOME

Said = Callable[..., tuple[int, str, str]]


def train(folder: Path, lr: float, name: str) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    with nbp.watch(model, optimizer, store=folder, name=name, config={"lr": lr, "depth": 2}) as run:
        for step in range(30):
            optimizer.zero_grad()
            loss = model(torch.ones(4, 2) * step).square().mean()
            loss.backward()
            optimizer.step()
            run.log({"loss": loss.item(), "eval_accuracy": 1 - lr})


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home, and runs beside it."""
    folder = tmp_path_factory.mktemp("lab")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(HOME, str(folder / "home"))
        for name, lr in (("slow", 1e-4), ("fine", 1e-3), ("fast", 1e-2)):
            train(folder / f"{name}.zarr", lr, name)
    return folder


@pytest.fixture
def said(lab: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Said:
    """What a command says: its exit code, stdout and stderr."""
    monkeypatch.setenv(HOME, str(lab / "home"))
    monkeypatch.setenv("COLUMNS", "100")

    def say(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        try:
            code = main(words)
        except SystemExit as ended:
            code = int(str(ended.code))
        found = capsys.readouterr()
        return code, found.out, found.err

    return say
