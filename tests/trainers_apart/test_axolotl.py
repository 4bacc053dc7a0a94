"""The plugin for axolotl, by axolotl's own plugin manager; a Trainer trains in axolotl's place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from axolotl.integrations.base import PluginManager
from axolotl.utils.dict import DictDefault
from torch import nn

import notebook_probe as nbp
from tests.libraries.recorded_scalars import scalars
from tests.models import normal

transformers = pytest.importorskip("transformers")  # which axolotl requires

pytestmark = pytest.mark.libraries

PLUGIN = "notebook_probe.train.frameworks.axolotl.WatchPlugin"
N_STEPS = 6


class Regression(nn.Module):
    """A model as the Trainer wants it: it returns its loss."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 1)

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": (self.layer(x)[:, 0] - labels).square().mean()}


def trainer(**options: Any) -> Any:
    samples = [{"x": one, "labels": one.sum()} for one in normal(0, 24, 4)]
    arguments = transformers.TrainingArguments(
        "out", max_steps=N_STEPS, logging_steps=1, use_cpu=True, run_name="first", **options
    )
    return transformers.Trainer(Regression(), arguments, train_dataset=samples)


def trained(one: Any, settings: dict[str, Any]) -> int:
    """Train as axolotl does, and return the number of callbacks that its plugins have added."""
    manager = PluginManager.get_instance()
    manager.plugins.clear()
    manager.register(PLUGIN)
    cfg = DictDefault(settings)
    manager.cfg = cfg
    added = manager.add_callbacks_post_trainer(cfg, one)
    for callback in added:
        one.add_callback(callback)
    one.train()
    return len(added)


def test_a_training_with_the_plugin_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = {"base_model": "tiny", "lora_r": 8, "hub_token": "hf_secret", "plugins": [PLUGIN]}
    assert trained(trainer(report_to="none"), settings) == 1
    [store] = (tmp_path / "runs").iterdir()
    run = nbp.open_run(store)
    assert run.name == "first"
    assert [*scalars(run, "loss")] == [*range(N_STEPS)]
    assert run.config["axolotl"]["lora_r"] == 8
    assert run.config["max_steps"] == N_STEPS
    assert "hf_secret" not in str(run.config)


def test_a_trainer_that_reports_already_is_recorded_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert trained(trainer(report_to="notebook_probe"), {"base_model": "tiny"}) == 0
    assert len([*(tmp_path / "runs").iterdir()]) == 1
