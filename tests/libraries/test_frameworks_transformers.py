"""The callback for the Trainer of transformers: its log history is what is recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import nn
from torch.utils.data import Dataset
from transformers import Trainer, TrainerCallback, TrainingArguments

import notebook_probe as nbp
from notebook_probe.train.frameworks.transformers import WatchCallback
from tests.libraries.case import language
from tests.libraries.frameworks_page import run_section
from tests.libraries.recorded_scalars import nearly, scalars, stop_at
from tests.libraries.trained_twice import N_BATCHES, N_EPOCHS
from tests.libraries.transformers_models import gpt2
from tests.models import made
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch

pytestmark = pytest.mark.libraries

BATCH_SIZE = 2


class Sentences(Dataset[dict[str, Any]]):
    """Sequences of twelve words."""

    def __len__(self) -> int:
        return N_BATCHES * BATCH_SIZE

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {name: value[0] for name, value in language(index).items()}


class Begun(TrainerCallback):
    """Counts the steps that are begun, each with batches drawn for it."""

    n = 0

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self.n += 1


def arguments_in(folder: Path, **options: Any) -> TrainingArguments:
    return TrainingArguments(
        folder,
        num_train_epochs=N_EPOCHS,
        per_device_train_batch_size=BATCH_SIZE,
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
        save_strategy="no",
        **{"logging_steps": 1, "eval_strategy": "epoch", **options},
    )


def fit(model: nn.Module, folder: Path, *callbacks: Any, **options: Any) -> dict[str, Any]:
    """Name -> updates completed -> what the Trainer keeps in its own history."""
    torch.manual_seed(7)
    trainer = Trainer(
        model,
        arguments_in(folder, **options),
        train_dataset=Sentences(),
        eval_dataset=Sentences(),
        callbacks=[*callbacks],
    )
    trainer.train()
    history: dict[str, dict[int, float]] = {}
    for entry in trainer.state.log_history:
        for name, value in entry.items():
            history.setdefault(name, {})[entry["step"]] = value
    return history


@pytest.mark.parametrize(
    ("options", "n_steps"),
    [
        ({}, N_BATCHES),
        ({"gradient_accumulation_steps": 3}, 4),
        ({"logging_steps": 3, "eval_strategy": "steps", "eval_steps": 2}, N_BATCHES),
    ],
    ids=["plain", "accumulation", "every few steps"],
)
def test_the_history_of_the_trainer_is_recorded_at_its_steps_and_states(
    tmp_path: Path, options: dict[str, Any], n_steps: int
) -> None:
    alone, model = made(gpt2), made(gpt2)
    fit(alone, tmp_path, **options)
    left = everything(alone)
    callback = WatchCallback(store=tmp_path / "run.zarr")
    history = fit(model, tmp_path, callback, **options)
    assert differing(left, everything(model)) == []
    run = callback.run
    assert run is not None
    for name in ("loss", "learning_rate"):
        of_steps = {step - 1: value for step, value in history[name].items()}
        assert scalars(run, name) == nearly(of_steps)
    assert len(history["eval_loss"]) >= N_EPOCHS
    assert scalars(run, "eval_loss") == nearly(history["eval_loss"])
    (summary,) = history["train_loss"].values()
    assert run.annotations["train_loss"] == summary
    epochs = [(event.step, event.text) for event in run.events if event.kind == "epoch"]
    assert epochs == [(0, "epoch 1 begins"), (n_steps, "epoch 2 begins")]
    assert run.status().problem == ""
    run.close()


def test_what_is_logged_by_epoch_is_of_the_state_at_its_end(tmp_path: Path, watch: Watch) -> None:
    model = made(gpt2)
    run = watch(model)
    history = fit(model, tmp_path, WatchCallback(run), logging_strategy="epoch")
    assert list(history["loss"]) == [N_BATCHES, N_BATCHES * N_EPOCHS]
    assert scalars(run, "loss") == nearly(history["loss"])


@pytest.mark.parametrize("logging_steps", [1, 100], ids=["logged", "not logged"])
def test_stop_ends_the_training_after_its_step_and_begins_no_other(
    tmp_path: Path, watch: Watch, logging_steps: int
) -> None:
    model, begun = made(gpt2), Begun()
    run = watch(model)
    stop_at(run, 4)
    history = fit(model, tmp_path, WatchCallback(run), begun, logging_steps=logging_steps)
    assert begun.n == 4
    assert list(history["train_loss"]) == [4]
    assert list(scalars(run, "eval_loss")) == [4]
    assert run.data.grad_norm.dropna("step", how="all").step.values.tolist() == [0, 1, 2, 3]
    assert run.status().state == "idle"


def test_a_schedule_knows_how_long_the_trainer_trains(tmp_path: Path, watch: Watch) -> None:
    model = made(gpt2)
    run = watch(model, probes=None)
    run.attach("lm_head", "weight_norm", "times(5)")
    fit(model, tmp_path, WatchCallback(run))
    steps = run.data.weight_norm.dropna("step", how="all").step.values.tolist()
    assert len(steps) == 5
    assert steps[-1] > N_BATCHES


def test_the_code_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_section(
        "HF Trainer",
        {
            "transformers": transformers,
            "model": made(gpt2),
            "arguments": arguments_in(tmp_path),
            "train_data": Sentences(),
            "eval_data": Sentences(),
        },
    )
    assert list(scalars(nbp.open_run("runs/first.zarr"), "eval_loss")) == [10, 20]
