"""What the loop hands over, from an accelerator: the numbers of the host, and nothing waits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim import SGD

import notebook_probe as nbp
from tests.models import floats, made, mlp
from tests.probes.reading.on_accelerator import never_by_itself
from tests.run.accelerator import Accelerator, copies, moved, on_device, waits

QUANTITIES = (
    *("logit_logsumexp", "prediction_entropy", "confidence", "accuracy", "el2n", "ece"),
    *(
        "label_entropy",
        "label_share",
        "padding_share",
        "truncated_share",
        "duplicate_fraction",
        "batch_seen_before",
    ),
    "forgetting_events",
    *("sample_loss_quantiles", "worst_samples", "worst_sample_losses"),
    *("loss_by_bucket", "samples_by_bucket"),
    *("loss_ema", "samples_per_second"),
)
inputs = floats(16, 4)


def train(folder: Path, is_on_device: bool) -> dict[str, Any]:
    never_by_itself()
    torch.manual_seed(0)
    model: nn.Module = made(mlp)
    model = moved(model) if is_on_device else model
    placed = on_device if is_on_device else torch.Tensor.clone
    run = nbp.watch(model, store=folder / "run.zarr", probes={"": [*QUANTITIES]})
    optimizer = SGD(model.parameters(), lr=0.5)
    for step in range(6):
        x, indices = inputs(step % 2), torch.arange(16) + 16 * (step % 2)
        x[3] = x[4]
        targets = indices % 2
        targets[5] = -100
        flags = {"mask": placed(targets >= 0), "truncated": placed(indices > 9)}
        run.batch(targets=placed(targets), indices=indices, **flags)
        losses = F.cross_entropy(model(placed(x)), placed(targets), reduction="none")
        run.batch(losses=losses, buckets=placed(targets))
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()
        run.log(loss=losses.mean())
    waited = len(waits), len(copies)
    run.close()
    return {
        "waited": waited,
        "errors": [probe.error for probe in run.status().errors],
        "found": {name: run.series("", name).values for name in QUANTITIES},
    }


def test_batches_on_a_device_wait_for_nothing_and_give_the_numbers_of_the_host(
    accelerator: Accelerator, tmp_path: Path
) -> None:
    told = accelerator.run(train, tmp_path / "device", True)
    want = accelerator.run(train, tmp_path / "host", False)
    assert told["errors"] == want["errors"] == []
    assert told["waited"] == (0, 0)
    for name in QUANTITIES[:-1]:  # the last is of the clock
        np.testing.assert_allclose(told["found"][name], want["found"][name], rtol=1e-5)
        assert len(want["found"][name]) == 6
    assert want["found"]["duplicate_fraction"][0] == 1 / 16
    assert want["found"]["label_share"][0] == 15 / 16
    assert want["found"]["batch_seen_before"].tolist() == [0, 0, 1, 1, 1, 1]
