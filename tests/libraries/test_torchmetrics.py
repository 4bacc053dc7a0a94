"""torchmetrics' objects as they are, in a trainer of our own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from notebook_probe.train import Dataset, Loop, Trainer

pytestmark = pytest.mark.libraries
torchmetrics = pytest.importorskip("torchmetrics")


def a_loop() -> Loop:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
    accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=3)
    confusion = torchmetrics.ConfusionMatrix(task="multiclass", num_classes=3)
    both = torchmetrics.MetricCollection([accuracy.clone(), confusion])
    trainer = Trainer(
        model,
        nn.functional.cross_entropy,
        torch.optim.AdamW(model.parameters(), 1e-2),
        train_metrics=[accuracy],
        eval_metrics={"all": both, "f1": torchmetrics.F1Score(task="multiclass", num_classes=3)},
    )
    return Loop(trainer)


def some_data(n: int = 6) -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(n * 8, 4, generator=generator)
    return list(zip(x.split(8), x[:, :3].argmax(1).split(8), strict=True))


def test_an_accuracy_is_that_of_all_batches_so_far(tmp_path: Path) -> None:
    loop, data = a_loop(), some_data()
    run = loop.watch(store=tmp_path / "run.zarr", probes=None)
    rights: list[torch.Tensor] = []
    means: list[float] = []

    def look(module: nn.Module, args: tuple[torch.Tensor], output: torch.Tensor) -> None:
        if module.training:
            rights.append(output.argmax(1) == args[0][:, :3].argmax(1))
            means.append(torch.cat(rights).float().mean().item())

    loop.trainer.model.register_forward_hook(look)
    loop.run_epochs(Dataset(data, "digits"), 2)
    assert run.series("", "multiclass_accuracy").values.tolist() == pytest.approx(means)
    run.close()


def test_collections_and_what_is_no_number_are_taken_apart_and_left_out() -> None:
    loop, data = a_loop(), some_data()
    found = loop.eval(Dataset(data, "test"))
    assert {"all_MulticlassAccuracy", "f1"} <= found.keys()
    assert not any("Confusion" in name for name in found)
    model = loop.trainer.model.eval()
    right = [(model(x).argmax(1) == y).float() for x, y in data]
    assert found["all_MulticlassAccuracy"] == pytest.approx(float(torch.cat(right).mean()))


def test_metrics_go_on_from_a_checkpoint(tmp_path: Path) -> None:
    data = some_data()
    whole = a_loop()
    seen: list[float] = []
    whole.on_step(lambda loop, metrics: seen.append(float(metrics["multiclass_accuracy"])))
    whole.run_epochs(Dataset(data, "digits"), 2)
    half, resumed, again = a_loop(), a_loop(), list[float]()
    half.run_epochs(Dataset(data, "digits"), 1)
    half.save_checkpoint(tmp_path)
    resumed.load_checkpoint(tmp_path)
    resumed.on_step(lambda loop, metrics: again.append(float(metrics["multiclass_accuracy"])))
    resumed.run_epochs(Dataset(data, "digits"), 2)
    assert again == seen[6:]
