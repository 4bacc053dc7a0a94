"""Images that TensorBoard and W&B have written are read exactly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import wandb
from torch.utils.tensorboard import SummaryWriter

import notebook_probe as nbp

pytestmark = pytest.mark.libraries

IMAGES = np.random.default_rng(0).integers(0, 256, (3, 12, 9, 3), np.uint8)


def test_of_tensorboard(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path / "first") as writer:
        for step, pixels in enumerate(IMAGES):
            writer.add_image("val/samples", torch.tensor(pixels), step, dataformats="HWC")
            writer.add_scalar("loss", 0.5, step)
    found = nbp.open_run(tmp_path / "first").series("", "logged_val_samples_image")
    assert found.step.values.tolist() == [0, 1, 2]
    np.testing.assert_array_equal(found.values, IMAGES)


def test_of_wandb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    run = wandb.init(project="digits", dir=str(tmp_path))
    for step, pixels in enumerate(IMAGES):
        run.log({"one": wandb.Image(pixels), "loss": 0.5})
        run.log({"several": [wandb.Image(pixels), wandb.Image(255 - pixels)]}, step=10 + step)
    run.finish()
    wandb.teardown()
    (folder,) = (tmp_path / "wandb").glob("offline-run-*")
    record = nbp.open_run(folder)
    np.testing.assert_array_equal(record.series("", "logged_one_image").values, IMAGES)
    np.testing.assert_array_equal(record.series("", "logged_several_1_image").values, 255 - IMAGES)
    assert record.series("", "loss").size == 3
