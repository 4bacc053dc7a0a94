"""Trainers that compile the model: measured inside its graphs, and trained as without watching."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

import notebook_probe as nbp
from tests.probes.inside.compiled_models import n_breaks, n_graphs

pytestmark = [pytest.mark.libraries, pytest.mark.filterwarnings("ignore")]

N_STEPS = 6
EVERY = 2
QUANTITIES = ("output_norm", "output_grad_norm", "output_channel_rms")
PROBES = [[quantity, f"every({EVERY})"] for quantity in QUANTITIES]
DUE = [*range(0, N_STEPS, EVERY)]


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch._dynamo.reset()


def drawn(i: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(i))


def check(run: nbp.Run, eager: nbp.Run) -> None:
    """Compare all of a run with that of an uncompiled twin."""
    run.controls.settle()
    by_place = {(probe.module, probe.quantity): probe for probe in run.probes()}
    for probe in eager.probes():
        if probe.n_values == 0:
            assert "not called" in by_place[probe.module, probe.quantity].note
        else:
            found = run.series(probe.module, probe.quantity)
            assert found.step.values.tolist() == DUE
            np.testing.assert_allclose(
                found, eager.series(probe.module, probe.quantity), rtol=1e-4, atol=1e-6
            )


def bert() -> nn.Module:
    torch.manual_seed(0)
    return BertForSequenceClassification(
        BertConfig(
            vocab_size=64,
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=32,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        )
    )


def fit_by_trainer(model: nn.Module, folder: Path, compiled: bool) -> None:
    words = [(64 * drawn(i, 8).sigmoid()).long() for i in range(4 * N_STEPS)]
    data = [{"input_ids": one, "labels": torch.tensor(i % 2)} for i, one in enumerate(words)]
    options = TrainingArguments(
        str(folder),
        max_steps=N_STEPS,
        per_device_train_batch_size=4,
        torch_compile=compiled,
        torch_compile_backend="aot_eager" if compiled else None,
        eval_strategy="steps",
        eval_steps=3,
        save_strategy="no",
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
    )
    Trainer(model, options, train_dataset=data, eval_dataset=data[:4]).train()


def test_the_trainer_of_transformers_compiles_and_everything_is_measured(tmp_path: Path) -> None:
    alone, model, plain = bert(), bert(), bert()
    before = n_graphs()
    fit_by_trainer(alone, tmp_path / "alone", compiled=True)
    n_alone = n_graphs() - before
    torch._dynamo.reset()
    layers = {"bert.encoder.layer.*": PROBES}
    with (
        nbp.watch(model, store=tmp_path / "run.zarr", probes=layers, budget=None) as run,
        nbp.watch(plain, store=tmp_path / "eager.zarr", probes=layers, budget=None) as eager,
    ):
        fit_by_trainer(model, tmp_path / "watched", compiled=True)
        assert n_graphs() - before - n_alone == n_alone + 1, "one more, with readings"
        assert n_breaks() == 0
        fit_by_trainer(plain, tmp_path / "plain", compiled=False)
        eager.controls.settle()
        check(run, eager)
    assert all(map(torch.equal, alone.parameters(), model.parameters()))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.relu, self.last = nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.relu(self.first(x)))


class Lit(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net: Any = Net()

    def training_step(self, batch: list[Tensor], index: int) -> Tensor:
        return (self.net(batch[0]) - 0.3).square().mean()

    def validation_step(self, batch: list[Tensor], index: int) -> None:
        self.log("loss", self.training_step(batch, index))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.1)


def fit_by_lightning(module: Any) -> None:
    loader = DataLoader(TensorDataset(drawn(0, 4 * N_STEPS, 4)), batch_size=4)
    trainer = lightning.Trainer(
        max_epochs=1,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(module, loader, loader)


def whole(module: Lit) -> Any:
    return torch.compile(module, backend="aot_eager")


def its_network(module: Lit) -> Lit:
    module.net = torch.compile(module.net, backend="aot_eager")
    return module


def its_network_in_place(module: Lit) -> Lit:
    module.net.compile(backend="aot_eager")
    return module


@pytest.mark.parametrize("compiled", [whole, its_network, its_network_in_place])
def test_lightning_trains_a_compiled_module_and_everything_is_measured(
    compiled: Callable[[Lit], Any], tmp_path: Path
) -> None:
    alone, model, plain = Lit(), Lit(), Lit()
    before, n_broken = n_graphs(), n_breaks()
    fit_by_lightning(compiled(alone))
    n_alone, n_broken_alone = n_graphs() - before, n_breaks() - n_broken
    torch._dynamo.reset()
    layers = {("net.first", "net.relu", "net.last"): PROBES}
    with (
        nbp.watch(model, store=tmp_path / "run.zarr", probes=layers, budget=None) as run,
        nbp.watch(plain, store=tmp_path / "eager.zarr", probes=layers, budget=None) as eager,
    ):
        fit_by_lightning(compiled(model))
        assert n_graphs() - before - n_alone == n_alone + 1, "one more, with readings"
        assert n_breaks() - n_broken == 2 * n_broken_alone, "Lightning's own"
        fit_by_lightning(plain)
        eager.controls.settle()
        check(run, eager)
    assert all(map(torch.equal, alone.parameters(), model.parameters()))
