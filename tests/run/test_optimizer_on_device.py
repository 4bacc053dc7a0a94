"""What optimizers do on an accelerator: measured as on the host, and nothing waits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Adam

import notebook_probe as nbp
from tests.models import floats, made, mlp
from tests.probes.reading.on_accelerator import loss_on, never_by_itself
from tests.run.accelerator import Accelerator, copies, moved, on_device, waits

batch = floats(5, 4)
OF_WEIGHTS = [
    *("adam_update_rms", "moment_ratio", "grad_below_eps_fraction", "effective_lr_quantiles"),
    "update_cosine",
]
OF_ALL = [
    *("lr", "weight_decay", "momentum", "log_step_size", "grad_depth_slope", "clip_coefficient"),
    *("gradient_noise_scale", "norm_test", "inner_product_test", "orthogonality_test"),
    *("gsnr", "stiffness", "early_stopping_evidence", "grad_norm"),
]


def train_on_device(folder: Path) -> dict[str, Any]:
    never_by_itself()
    with patch.object(torch, "_foreach_norm", wraps=torch._foreach_norm) as together:
        found = train(folder, moved(made(mlp)), on_device)
    return {**found, "together": together.call_count}


def train(folder: Path, model: nn.Module, put: Callable[[Tensor], Tensor]) -> dict[str, Any]:
    run = nbp.watch(model, store=folder / "r.zarr", probes={"": OF_ALL, "0": OF_WEIGHTS})
    optimizer = Adam(model.parameters(), lr=0.01, foreach=False)
    for step in range(3):
        optimizer.zero_grad()
        for micro in range(2):
            loss_on(model(put(batch(10 * step + micro)))).backward()
        optimizer.step()
    waited = len(waits), len(copies)
    run.close()
    data = run.data.load()
    return {
        "values": {name: data[name].values for name in (*OF_ALL, *OF_WEIGHTS)},
        "errors": [(probe.quantity, probe.error) for probe in run.status().errors],
        "waited": waited,
    }


def test_what_an_optimizer_does_on_a_device_is_measured_without_waiting_for_it(
    accelerator: Accelerator, tmp_path: Path
) -> None:
    found = accelerator.run(train_on_device, tmp_path / "device")
    want = train(tmp_path / "host", made(mlp), lambda tensor: tensor)
    assert (found["errors"], want["errors"]) == ([], [])
    for name, values in want["values"].items():
        np.testing.assert_allclose(found["values"][name], values, rtol=1e-4, err_msg=name)
    assert found["waited"] == (0, 0)


def test_the_norms_of_all_gradients_on_a_device_and_of_all_updates_are_taken_in_one_go(
    accelerator: Accelerator, tmp_path: Path
) -> None:
    found = accelerator.run(train_on_device, tmp_path / "device")
    assert found["together"] == 2 * 3, "twice in each step"
