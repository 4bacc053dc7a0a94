"""Every quantity made of tensors, on an accelerator: the same numbers, and nothing waits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import Tensor, nn
from torch.optim import SGD

import notebook_probe as nbp
from notebook_probe.model.map import ModelMap
from notebook_probe.run.attach.request import misfit
from tests.models import floats, made, mlp
from tests.probes.reading.on_accelerator import loss_on, never_by_itself
from tests.quantities.evaluated import of_tensors
from tests.run.accelerator import Accelerator, copies, moved, on_device, waits

batch = floats(5, 4)
PLACE = "0"
DECIDING = {"weight_matrix"}
"""What asks whether all is finite before it hands a matrix to a solver."""


def decides(quantity: nbp.Quantity) -> bool:
    return any(feature.name in DECIDING for feature in quantity.features)


def train_on_device(folder: Path) -> dict[str, Any]:
    never_by_itself()
    return train(folder, moved(made(mlp)), on_device)


def train(folder: Path, model: nn.Module, put: Callable[[Tensor], Tensor]) -> dict[str, Any]:
    model_map = ModelMap(model)
    wanted = [q for q in of_tensors().values() if not misfit(model_map, PLACE, q)]
    free = [quantity for quantity in wanted if not decides(quantity)]
    run = nbp.watch(model, store=folder / "r.zarr", probes={PLACE: free}, budget=None)
    optimizer = SGD(model.parameters(), lr=0.1)
    for step in range(3):
        if step == 2:
            waited = (len(waits), len(copies), [*waits][:5])
            run.attach(PLACE, [quantity for quantity in wanted if decides(quantity)])
        optimizer.zero_grad()
        for micro in range(2):
            loss_on(model(put(batch(10 * step + micro)))).backward()
        optimizer.step()
    run.close()
    series = {q.name: run.series(PLACE, q.name).load() for q in wanted}
    return {
        "values": {name: (one.step.values.tolist(), one.values) for name, one in series.items()},
        "errors": [(probe.quantity, probe.error) for probe in run.status().errors],
        "waited": waited,
    }


@pytest.mark.slow
def test_all_quantities_are_the_same_on_a_device_and_wait_for_nothing(
    accelerator: Accelerator, tmp_path: Path
) -> None:
    found = accelerator.run(train_on_device, tmp_path / "device")
    want = train(tmp_path / "host", made(mlp), lambda tensor: tensor)
    assert (found["errors"], want["errors"]) == ([], [])
    assert found["values"].keys() == want["values"].keys()
    for name, (steps, values) in want["values"].items():
        assert found["values"][name][0] == steps, name
        np.testing.assert_allclose(
            found["values"][name][1], values, rtol=1e-4, atol=1e-6, err_msg=name
        )
    assert found["waited"][:2] == (0, 0), found["waited"]
