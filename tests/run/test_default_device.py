"""Under ``torch.set_default_device`` the numbers are made where they are measured."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import xarray as xr
from torch.optim import SGD

from tests.models import ConvNet, floats, made
from tests.run.conftest import Watch

STEPS = 3
batch = floats(4, 1, 6, 6)


def recorded(watch: Watch, probes: list[str], default: str | None) -> xr.Dataset:
    model = made(lambda: ConvNet(inplace=False))
    batches = [batch(step) for step in range(STEPS)]
    optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9, foreach=False)
    torch.set_default_device(default)
    try:
        run = watch(model, probes=probes)
        for given in batches:
            optimizer.zero_grad()
            loss = (model(given) - 0.3).square().mean()
            loss.backward()
            optimizer.step()
            run.log(loss=loss)
        run.close()
    finally:
        torch.set_default_device(None)
    assert [(probe.quantity, probe.error) for probe in run.status().errors] == []
    return run.data.load()


@pytest.mark.parametrize(
    "probes",
    [
        ["default", "gradients", "optimizer"],
        pytest.param(
            ["alerts", "activations", "spectra", "batchnorm", "precision"], marks=pytest.mark.slow
        ),
    ],
)
def test_a_default_device_changes_no_number(probes: list[str], watch: Watch) -> None:
    want = recorded(watch, probes, None)
    found = recorded(watch, probes, "meta")  # on which nothing has a value
    assert {*found.data_vars} == {*want.data_vars} > {"grad_norm", "loss"}
    for name in {*want.data_vars} - {"step_time"}:  # seconds, which no two runs share
        np.testing.assert_array_equal(found[name].values, want[name].values, err_msg=str(name))
