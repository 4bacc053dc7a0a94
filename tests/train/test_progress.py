"""A bar where somebody would see it, and nowhere else."""

import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tqdm.auto

import notebook_probe as nbp
from notebook_probe.train import Checkpoints, Loop
from notebook_probe.train.loop import progress
from tests.train.conftest import a_loop, batches, trainer


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The bars of tqdm that were made."""
    made: list[Any] = []

    def bar(**options: Any) -> Any:
        made.append(tqdm.tqdm(file=io.StringIO(), **options))
        return made[-1]

    monkeypatch.setattr(tqdm.auto, "tqdm", bar)
    monkeypatch.setattr(progress, "EVERY_S", 0.0)
    return made


def test_a_bar_shows_the_steps_the_epoch_and_the_loss(bars: list[Any]) -> None:
    loop = Loop(trainer(), progress=True)
    shown: list[tuple[int, Any]] = []
    loop.on_step(lambda loop, m: shown.append((bars[0].n, bars[0].desc)), priority=1)
    loop.run_epochs(batches(3), 2)
    assert bars[0].total == 6
    assert shown == [(i + 1, f"epoch {i // 3}: ") for i in range(6)]
    assert "loss 0." in bars[0].postfix
    loop.run_steps(batches(3), 2)
    assert (bars[1].total, bars[1].n) == (2, 2)


def test_a_bar_ends_with_the_last_loss_and_one_of_no_steps_is_not_shown(
    bars: list[Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(progress, "EVERY_S", 3600.0)
    loop = Loop(trainer(), progress=True)
    loop.add(Checkpoints(tmp_path, every=2))
    metrics = loop.run_steps(batches(4), 4)
    assert metrics is not None
    assert bars[0].postfix == f"loss {metrics['loss']:.4g}"
    loop.rewind(2)
    assert len(bars) == 1
    loop.run_steps(batches(4), 2)
    loop.rewind(3)
    assert [bar.total for bar in bars] == [4, 2, 1]


def test_nobody_is_shown_a_bar_in_a_pipe(bars: list[Any]) -> None:
    a_loop().run_epochs(batches(2), 1)
    assert bars == []


def test_a_terminal_has_a_bar(bars: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    a_loop().run_epochs(batches(2), 1)
    assert [bar.n for bar in bars] == [2]


def test_a_notebook_has_a_bar_unless_it_shows_the_panel(
    bars: list[Any], monkeypatch: pytest.MonkeyPatch, watched: Callable[..., nbp.Run]
) -> None:
    import IPython

    kernel = type("Shell", (), {"kernel": object()})()
    monkeypatch.setattr(IPython, "get_ipython", lambda: kernel)
    loop = a_loop()
    run = watched(loop)
    loop.run_epochs(batches(2), 1)
    remove = run.controls.each_boundary(lambda: None)  # as the panel does
    loop.run_epochs(batches(2), 1)
    remove()
    assert len(bars) == 1


@pytest.mark.slow
def test_without_tqdm_there_is_no_bar() -> None:
    script = """
import sys
sys.modules["tqdm"] = sys.modules["tqdm.auto"] = None
import torch
from notebook_probe.train import Loop, Trainer
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
loop = Loop(Trainer(model, torch.nn.functional.mse_loss, optimizer), progress=True)
loop.run_steps([(torch.ones(1, 1), torch.ones(1, 1))], 1)
print(loop.loop_step)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "1\n"
