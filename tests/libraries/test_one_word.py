"""Trainers that take a logger by one word, or by one object that knows no model, are recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import accelerate
import lightning
import pytest
import torch
import transformers
from lightning.pytorch.callbacks import LearningRateMonitor, ModelCheckpoint
from torch.nn import functional as F
from torch.utils.data import DataLoader
from transformers import Trainer

import notebook_probe as nbp
import notebook_probe.train.frameworks.accelerate
from notebook_probe.train.frameworks.lightning import NotebookProbeLogger, WatchCallback
from notebook_probe.train.frameworks.transformers import WORD, ReportCallback
from tests.launch.programs import plainly, under_nbp
from tests.libraries.accelerators import new_accelerator
from tests.libraries.case import N_WORDS
from tests.libraries.frameworks_page import run_section
from tests.libraries.recorded_scalars import scalars
from tests.libraries.test_frameworks_lightning import Classifier
from tests.libraries.test_frameworks_transformers import Sentences
from tests.libraries.trained_twice import BATCH_SIZE, N_BATCHES, classifier, dataset
from tests.libraries.transformers_models import gpt2
from tests.models import made
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch

pytestmark = [
    pytest.mark.libraries,
    pytest.mark.filterwarnings("ignore::lightning.pytorch.utilities.warnings.PossibleUserWarning"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),  # Lightning asks torch so
    pytest.mark.filterwarnings("ignore:'pin_memory' argument:UserWarning"),
]

SECRET = "hf_" + "secret" * 5


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def trainer_of(model: torch.nn.Module, folder: Path, **options: Any) -> Trainer:
    torch.manual_seed(7)
    arguments = transformers.TrainingArguments(
        folder,
        num_train_epochs=1,
        per_device_train_batch_size=2,
        use_cpu=True,
        learning_rate=0.003,
        hub_token=SECRET,
        disable_tqdm=True,
        save_strategy="no",
        logging_steps=1,
        **{"report_to": WORD, **options},
    )
    return Trainer(model, arguments, train_dataset=Sentences())


def run_in(trainer: Trainer) -> nbp.Run:
    callbacks = trainer.callback_handler.callbacks
    (callback,) = [one for one in callbacks if isinstance(one, ReportCallback)]
    assert callback.run is not None
    return callback.run


# ---------------------------------------------------------------- transformers


def test_the_word_records_everything_that_the_trainer_was_given(tmp_path: Path) -> None:
    alone, model = made(gpt2), made(gpt2)
    trainer_of(alone, tmp_path, report_to="none").train()
    trainer = trainer_of(model, tmp_path, run_name="tiny")
    trainer.train()
    assert differing(everything(alone), everything(model)) == []
    run = run_in(trainer)
    run.close()
    record = nbp.open_run(run.location)
    assert record.name == "tiny"
    assert len(scalars(record, "loss")) == N_BATCHES
    config = record.config
    assert config["learning_rate"] == 0.003
    assert (config["per_device_train_batch_size"], config["run_name"]) == (2, "tiny")
    assert config["model"]["class"] == type(model).__name__
    assert config["model"]["vocab_size"] == N_WORDS
    whole = b"".join(one.read_bytes() for one in Path(run.location).rglob("*") if one.is_file())
    assert SECRET.encode() not in whole
    assert "hub_token" not in json.dumps(config)


def test_a_run_that_watches_already_takes_what_the_word_reports(
    tmp_path: Path, watch: Watch
) -> None:
    model = made(gpt2)
    run = watch(model, config={"learning_rate": "as in the paper"})
    trainer = trainer_of(model, tmp_path)
    trainer.train()
    assert run_in(trainer) is run
    assert run.config["learning_rate"] == "as in the paper"
    assert run.config["seed"] == 42
    assert not Path("runs").exists()


def test_a_model_that_cannot_be_watched_is_trained(tmp_path: Path) -> None:
    Path("runs").write_text("no folder")
    trainer = trainer_of(made(gpt2), tmp_path)
    with pytest.warns(nbp.RecordWarning, match="not watched"):
        trainer.train()
    assert trainer.state.global_step == N_BATCHES


def test_a_configuration_that_raises_costs_only_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made(gpt2)
    trainer = trainer_of(model, tmp_path)

    def broken(*_: Any) -> dict[str, Any]:
        raise RecursionError("of itself")

    monkeypatch.setattr(type(trainer.args), "to_dict", broken)
    with pytest.warns(nbp.RecordWarning, match="a part of the configuration"):
        trainer.train()
    assert run_in(trainer).config["model"]["model_type"] == "gpt2"
    run_in(trainer).close()


PROGRAM = """
import torch, transformers
torch.manual_seed(0)
config = transformers.GPT2Config(vocab_size=50, n_positions=16, n_embd=8, n_layer=1, n_head=1,
    bos_token_id=0, eos_token_id=0)
model = transformers.GPT2LMHeadModel(config)
tokens = torch.randint(50, (16, 12))
arguments = transformers.TrainingArguments("out", max_steps=4, per_device_train_batch_size=4,
    logging_steps=1, save_strategy="no", disable_tqdm=True, use_cpu=True, report_to={word!r})
data = [{{"input_ids": row, "labels": row}} for row in tokens]
transformers.Trainer(model, arguments, train_dataset=data).train()
print(sum(value.double().sum().item() for value in model.parameters()))
"""


def test_a_program_that_says_the_word_is_recorded_by_nbp_run(tmp_path: Path) -> None:
    Path("train.py").write_text(PROGRAM.format(word="notebook_probe"))
    Path("plain.py").write_text(PROGRAM.format(word="none"))
    plain = plainly(tmp_path, "plain.py")
    told = under_nbp(tmp_path, "--store", "runs/first.zarr", "train.py")
    assert (told.code, told.out.splitlines()[-1]) == (0, plain.out.splitlines()[-1])
    record = nbp.open_run("runs/first.zarr")
    assert list(scalars(record, "loss")) == [0, 1, 2, 3]
    assert record.config["max_steps"] == 4
    assert len(list(Path("runs").iterdir())) == 1


# ---------------------------------------------------------------- accelerate


def test_accelerate_takes_the_word_and_logs_into_the_run_that_watches(watch: Watch) -> None:
    model = made(classifier)
    accelerator = new_accelerator(log_with="notebook_probe")
    accelerator.init_trackers("digits", config={"lr": 0.01, "api_key": SECRET})
    run = watch(model)
    model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.01))
    for inputs, classes in DataLoader(dataset(), BATCH_SIZE):
        loss = F.cross_entropy(model(inputs), classes)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        accelerator.log({"loss": loss.item()})
    accelerator.end_training()
    accelerator.free_memory()
    assert list(scalars(run, "loss")) == [*range(N_BATCHES)]
    assert run.config == {"project": "digits", "lr": 0.01}


def test_without_a_run_the_word_warns_once() -> None:
    accelerator = new_accelerator(log_with="notebook_probe")
    accelerator.init_trackers("digits")
    with pytest.warns(nbp.RecordWarning, match="nothing is recorded"):
        accelerator.log({"loss": 1.0})
    accelerator.log({"loss": 1.0})  # where warnings are errors
    accelerator.end_training()
    accelerator.free_memory()


def test_the_word_of_accelerate_is_known_under_nbp_run(tmp_path: Path) -> None:
    lines = [
        "import accelerate, torch",
        "accelerator = accelerate.Accelerator(log_with='notebook_probe', cpu=True)",
        "accelerator.init_trackers('digits', config={'lr': 0.1})",
        "model = torch.nn.Linear(2, 2)",
        "optimizer = accelerator.prepare(torch.optim.SGD(model.parameters(), lr=0.1))",
        "accelerator.backward(model(torch.ones(1, 2)).sum())",
        "optimizer.step()",
        "accelerator.log({'loss': 0.5})",
        "accelerator.end_training()",
    ]
    Path("train.py").write_text("\n".join(lines))
    told = under_nbp(tmp_path, "--store", "runs/first.zarr", "train.py")
    assert told.code == 0, told.err
    record = nbp.open_run("runs/first.zarr")
    assert scalars(record, "loss") == {0: 0.5}
    assert record.config == {"project": "digits", "lr": 0.1}
    assert accelerate.__version__


# ---------------------------------------------------------------- Lightning


def fit(module: Classifier, logger: Any, *callbacks: Any, **options: Any) -> lightning.Trainer:
    torch.manual_seed(7)
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        devices=1,
        logger=logger,
        log_every_n_steps=4,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[*callbacks],
        **{"enable_checkpointing": False, **options},
    )
    loader = DataLoader(dataset(), BATCH_SIZE, shuffle=True)
    trainer.fit(module, loader, DataLoader(dataset(seed=1), BATCH_SIZE))
    return trainer


def test_the_logger_watches_and_records_every_step_and_all_settings(tmp_path: Path) -> None:
    alone, module = made(Classifier), made(Classifier)
    module.save_hyperparameters({"width": 8, "token": SECRET})
    fit(alone, False)
    logger = NotebookProbeLogger(store="runs/first.zarr")
    fit(module, logger, LearningRateMonitor("step"))
    assert differing(everything(alone), everything(module)) == []
    run = logger.experiment
    assert run is not None
    assert list(scalars(run, "train_loss_step")) == [*range(N_BATCHES)]
    assert list(scalars(run, "val_loss")) == [N_BATCHES]
    rates = scalars(run, next(name for name in _names(run) if name.startswith("lr-")))
    assert list(rates) == [3, 7], "at which Lightning monitors it, as of the state"
    assert run.config["width"] == 8
    assert run.config["trainer"]["max_epochs"] == 1
    assert run.config["batch_size"] == BATCH_SIZE
    assert SECRET not in json.dumps(run.config)
    assert run.status().problem == ""
    run.close()


def _names(run: nbp.Run) -> set[str]:
    return {one.name for stream in run.streams.values() for one in stream.variables}


def test_the_logger_takes_a_run_and_a_callback_that_are_there(watch: Watch) -> None:
    module = made(Classifier)
    run = watch(module)
    logger = NotebookProbeLogger()
    fit(module, logger)
    assert logger.experiment is run
    other = made(Classifier)
    callback = WatchCallback(watch(other))
    trainer = fit(other, second := NotebookProbeLogger(), callback)
    assert second.experiment is callback.run
    assert [one for one in trainer.callbacks if isinstance(one, WatchCallback)] == [callback]


def test_checkpoints_lie_in_a_folder_with_the_name_of_the_store(tmp_path: Path) -> None:
    module = made(Classifier)
    logger = NotebookProbeLogger(store="runs/first.zarr")
    trainer = fit(module, logger, enable_checkpointing=True, default_root_dir=tmp_path)
    (saved,) = tmp_path.glob("notebook_probe/first/checkpoints/*.ckpt")
    assert isinstance(trainer.callbacks[-1], ModelCheckpoint)
    assert trainer.checkpoint_callback is not None
    assert trainer.checkpoint_callback.best_model_path == str(saved)
    assert logger.experiment is not None
    logger.experiment.close()


def test_the_code_of_the_page_runs() -> None:
    run_section(
        "One word",
        {
            "transformers": transformers,
            "accelerate": accelerate,
            "torch": torch,
            "lightning": lightning,
            "model": made(gpt2),
            "module": made(Classifier),
            "network": made(classifier),
            "train_data": Sentences(),
            "train_loader": DataLoader(dataset(), BATCH_SIZE),
            "loss_fn": F.cross_entropy,
        },
    )
