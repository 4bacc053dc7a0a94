"""What is measured on an accelerator is what is measured on the host, on four kinds of models."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch.optim import SGD

import notebook_probe as nbp
from notebook_probe.model.map import ModelMap
from notebook_probe.run.attach.request import misfit
from tests.gpu.conftest import OnAccelerator
from tests.gpu.devices import CPU, Device
from tests.gpu.kinds import KINDS, loss_of_output
from tests.probes.reading.on_accelerator import never_by_itself

pytestmark = pytest.mark.xdist_group("accelerator")  # one process serves them all

ONE_OF_EACH_FAMILY = [
    *("attn_entropy", "bn_mean_tid", "distance_from_init", "sign_flips", "input_cov_max_eig"),
    *("zero_fraction", "feature_drift", "router_load_entropy", "gradient_noise_scale", "gsnr"),
    *("weight_histogram", "weight_log_histogram", "param_histogram", "input_mean", "norm_gain_rms"),
    *("grad_depth_slope", "lr", "adam_update_rms", "channel_kurtosis", "output_channel_mean"),
    *("range_headroom_bits", "logit_logsumexp", "output_quantiles", "effective_rank"),
    *("residual_change", "output_rms", "grad_abs_max", "saturated_fraction"),
    *("silent_input_fraction", "update_norm", "update_cosine"),
]
"""Whatever of these fits a module is measured at it."""

PROBES: dict[str, Any] = {
    "default": "default",
    "alerts": "alerts",
    "families": ONE_OF_EACH_FAMILY,
}
TIMES = {"step_time"}
"""Seconds, which are not the same in any two trainings."""
Array: TypeAlias = npt.NDArray[np.floating[Any]]

STEPS = 4
TOLERANCES = {torch.float32: (1e-3, 1e-5), torch.bfloat16: (1e-1, 1e-2)}
"""Relative, and absolute for each value: of CUDA's sums beside the host's.

In bf16 the trainings themselves differ: there all values of a quantity are one vector, as a count
in a bin may be one more.
"""


def trained(device: Device, folder: Path, kind: str, dtype: torch.dtype, probes: str) -> Any:
    """Values of every quantity after some steps, and what went wrong or was waited for."""
    never_by_itself()
    made = KINDS[kind]
    model = device.moved(made.made().to(dtype))
    wanted = PROBES[probes]
    if not isinstance(wanted, str):
        model_map = ModelMap(model)
        fitting = [name for name in wanted if not misfit(model_map, made.place, quantity_of(name))]
        wanted = {made.place: fitting}
    run = nbp.watch(model, store=folder / "r.zarr", probes=wanted, budget=None)
    optimizer = SGD(model.parameters(), lr=0.05, momentum=0.9, foreach=False)
    batches = [device.put(made.batch(step).to(dtype)) for step in range(2 * STEPS)]
    with device.no_waiting() as waited:
        for step in range(STEPS):
            optimizer.zero_grad()
            for micro in range(2):
                loss = loss_of_output(model(batches[2 * step + micro]))
                loss.backward()
            optimizer.step()
            run.log(loss=loss)
    run.close()
    data = nbp.open_run(run.location).data.load()
    return {
        "values": {str(name): data[name].values for name in {*data.data_vars} - TIMES},
        "errors": [(probe.quantity, probe.error) for probe in run.status().errors],
        "waited": (len(waited.calls), len(waited.copies)),
        "problem": run.status().problem,
    }


def quantity_of(name: str) -> nbp.Quantity:
    return nbp.list_quantities()[name]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("probes", PROBES)
def test_no_step_waits_and_every_value_is_that_of_the_host(
    probes: str, kind: str, dtype: torch.dtype, on_accelerator: OnAccelerator, tmp_path: Path
) -> None:
    found = on_accelerator(trained, tmp_path / "device", kind, dtype, probes)
    want = trained(CPU, tmp_path / "host", kind, dtype, probes)
    assert (found["errors"], found["problem"]) == (want["errors"], "")
    assert found["waited"] == (0, 0)
    assert found["values"].keys() == want["values"].keys()
    assert len(want["values"]) >= 8
    for name, values in want["values"].items():
        assert is_near(found["values"][name], values, dtype), name


def is_near(found: Array, want: Array, dtype: torch.dtype) -> bool:
    """Tell whether all values are there, and within the tolerance of their type."""
    relative, absolute = TOLERANCES[dtype]
    known = np.isfinite(want)
    if not np.array_equal(np.isnan(found), np.isnan(want)):
        return False
    off = found[known] - want[known]
    if dtype is torch.float32:
        largest = np.abs(want[known]).max(initial=0.0)
        return bool((np.abs(off) <= absolute + relative * largest).all())
    limit = relative * np.linalg.norm(want[known]) + absolute * np.sqrt(known.sum())
    return bool(np.linalg.norm(off) <= limit)
