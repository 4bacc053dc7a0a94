"""The tracker for accelerate: what is logged by the accelerator is what other trackers get."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import accelerate
import pytest
import torch
from accelerate.tracking import GeneralTracker
from torch import nn
from torch.nn import functional as F
from torch.optim import AdamW
from torch.utils.data import DataLoader

import notebook_probe as nbp
from notebook_probe.train.frameworks.accelerate import WatchTracker
from tests.libraries.accelerators import new_accelerator
from tests.libraries.frameworks_page import run_section
from tests.libraries.recorded_scalars import nearly, scalars, stop_at
from tests.libraries.trained_twice import BATCH_SIZE, N_BATCHES, N_EPOCHS, classifier, dataset
from tests.models import made
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch

pytestmark = pytest.mark.libraries


class Reported(GeneralTracker):
    """What accelerate hands to its trackers, by the loop's own count of updates."""

    name, requires_logging_directory, tracker = "reported", False, None

    def __init__(self) -> None:
        super().__init__()
        self.values: dict[str, dict[int, float]] = {}

    def log(self, values: dict[str, float], step: int | None = None, **_: Any) -> None:
        assert step is not None
        for name, value in values.items():
            self.values.setdefault(name, {})[step] = value


def fit(
    model: nn.Module, tracker: WatchTracker | None = None, accumulated: int = 1
) -> tuple[Reported, list[int]]:
    """Train as accelerate's guide says; what was reported, and how many batches came."""
    torch.manual_seed(7)
    reported, drawn = Reported(), []
    trackers = [reported, *([] if tracker is None else [tracker])]
    accelerator = new_accelerator(log_with=trackers, gradient_accumulation_steps=accumulated)
    accelerator.init_trackers("digits", config={"lr": 0.01})
    model, optimizer, training, validation = accelerator.prepare(
        model,
        AdamW(model.parameters(), lr=0.01),
        DataLoader(dataset(), BATCH_SIZE, shuffle=True),
        DataLoader(dataset(seed=1), BATCH_SIZE),
    )
    batches = training if tracker is None else tracker.batches(training)
    done = 0
    try:
        for epoch in range(N_EPOCHS):
            for inputs, classes in batches:
                drawn.append(epoch)
                with accelerator.accumulate(model):
                    loss = F.cross_entropy(model(inputs), classes)
                    accelerator.backward(loss)
                    optimizer.step()
                    optimizer.zero_grad()
                if accelerator.sync_gradients:
                    accelerator.log({"loss": loss.item(), "lr": "low"}, step=done)
                    done += 1
            accelerator.log({"epoch_end": float(epoch)}, step=done - 1)
            model.eval()
            with torch.no_grad():
                losses = [F.cross_entropy(model(x), y) for x, y in validation]
            model.train()
            eval_only: dict[str, Any] = {"notebook_probe": {"phase": "eval"}}
            values = {"eval_loss": torch.stack(losses).mean().item()}
            accelerator.log(values, step=done, log_kwargs=eval_only)
    finally:
        accelerator.end_training()
        accelerator.free_memory()
    return reported, drawn


@pytest.mark.parametrize("accumulated", [1, 3])
def test_what_the_accelerator_logs_is_recorded_at_its_steps_and_states(
    tmp_path: Path, accumulated: int
) -> None:
    alone, model = made(classifier), made(classifier)
    fit(alone, accumulated=accumulated)
    left = everything(alone)
    tracker = WatchTracker(model, store=tmp_path / "run.zarr")
    reported, drawn = fit(model, tracker, accumulated)
    assert differing(left, everything(model)) == []
    assert len(drawn) == N_EPOCHS * N_BATCHES
    run = tracker.run
    assert run is not None
    for name in ("loss", "epoch_end", "eval_loss"):
        assert scalars(run, name) == nearly(reported.values[name])
    assert len(reported.values["loss"]) == N_EPOCHS * (N_BATCHES if accumulated == 1 else 4)
    epochs = [event.step for event in run.events if event.kind == "epoch"]
    assert epochs == [0, len(reported.values["loss"]) // 2]
    assert run.annotations["config"] == {"lr": 0.01}
    assert run.status().problem == ""
    run.close()


def test_stop_acts_before_a_batch_is_handed_out(watch: Watch) -> None:
    model = made(classifier)
    run = watch(model)
    stop_at(run, 4)
    tracker = WatchTracker(run)
    with pytest.raises(nbp.TrainingStopped):
        fit(model, tracker)
    steps = run.data.grad_norm.dropna("step", how="all").step.values.tolist()
    assert steps == [0, 1, 2, 3]
    assert len(scalars(run, "loss")) == 4
    assert run.status().state == "idle"


def test_every_epoch_has_its_batches_and_no_more_are_drawn_than_asked_for(watch: Watch) -> None:
    drawn: list[int] = []

    class Source(Iterable[int]):
        def __iter__(self) -> Iterator[int]:
            for i in range(3):
                drawn.append(i)
                yield i

    batches = WatchTracker(watch(made(classifier))).batches(Source())
    assert [*batches] == [*batches] == [0, 1, 2]
    drawn.clear()
    next(iter(batches))
    assert drawn == [0]


def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    new_accelerator()
    model = made(classifier)
    names = {
        "accelerate": accelerate,
        "model": model,
        "optimizer": AdamW(model.parameters(), lr=0.01),
        "loader": DataLoader(dataset(), BATCH_SIZE),
        "loss_fn": F.cross_entropy,
        "validate": lambda model: 0.5,
    }
    run_section("accelerate", names)
    run = nbp.open_run("runs/first.zarr")
    assert len(scalars(run, "loss")) == 2 * N_BATCHES
    assert scalars(run, "eval_loss") == {N_BATCHES: 0.5, 2 * N_BATCHES: 0.5}
