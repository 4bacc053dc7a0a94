"""Values of every kind that come from an accelerator: own ones, logs, vectors, gaps."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

import notebook_probe as nbp
from tests.models import floats, made, mlp
from tests.probes.reading.on_accelerator import loss_on, never_by_itself
from tests.run.accelerator import Accelerator, copies, host, moved, on_device, waits

batch = floats(5, 4)


def share(output: Tensor) -> Tensor:
    """Of the user's own: a 0-d tensor that stays where it is."""
    return output.abs().amax() / output.abs().sum()


class Telling(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        nbp.collect("peak", x.amax(), combine="max")
        return self.linear(x)


def train_telling(folder: Path) -> dict[str, Any]:
    never_by_itself()
    model = moved(made(Telling))
    run = nbp.watch(model, store=folder / "r.zarr", probes={"linear": [share]}, budget=None)
    run.attach("linear", "weight_histogram")
    run.attach("linear", "output_norm", phase="eval")
    optimizer = SGD(model.parameters(), lr=0.1)
    expected: dict[str, list[float]] = {"peak": [], "share": [], "loss": [], "eval": []}
    for step in range(3):
        optimizer.zero_grad()
        peaks = []
        for micro in range(2):
            given = batch(10 * step + micro)
            peaks.append(float(given.max()))
            output = model(on_device(given))
            inner = host(output).double().abs()
            expected["share"].append(float(inner.max() / inner.sum()))
            loss = loss_on(output)
            loss.backward()
        expected["peak"].append(max(peaks))
        optimizer.step()
        run.log(loss=loss)
        expected["loss"].append(float(host(loss)))
        loss.detach().mul_(100.0)  # a logged value is that of its moment
        with torch.no_grad():
            model.eval()
            expected["eval"].append(float(host(model(on_device(batch(99)))).double().norm()))
            model.train()
    n_waits, n_copies = len(waits), len(copies)
    run.close()
    return {
        "expected": expected,
        "waits": n_waits,
        "copies": n_copies,
        "peak": run.series("", "peak").values,
        "share": run.series("linear", "share").values,
        "loss": run.series("", "loss").values,
        "eval": run.series("linear", "eval_output_norm").values,
        "counted": run.series("linear", "weight_histogram").values.sum(axis=-1).tolist(),
        "errors": [probe.error for probe in run.status().errors],
    }


def test_own_quantities_logs_collected_values_vectors_and_evaluation_wait_for_nothing(
    accelerator: Accelerator, tmp_path: Path
) -> None:
    told = accelerator.run(train_telling, tmp_path)
    expected = told["expected"]
    assert told["errors"] == []
    np.testing.assert_allclose(told["peak"], expected["peak"], rtol=1e-6)
    np.testing.assert_allclose(
        told["share"], np.reshape(expected["share"], (3, 2)).mean(axis=1), rtol=1e-5
    )
    np.testing.assert_allclose(told["loss"], expected["loss"], rtol=1e-6)
    np.testing.assert_allclose(told["eval"], expected["eval"], rtol=1e-5)
    assert told["counted"] == [8.0] * 3
    assert (told["waits"], told["copies"]) == (0, 0)


class Scaled(Optimizer):
    """As a fused optimizer under a gradient scaler: it alone knows whether the step counts."""

    def __init__(self, values: Any) -> None:
        super().__init__(values, {})
        self.grad_scale: Tensor | None = None
        self.found_inf: Tensor | None = None

    def step(self, closure: None = None) -> None:  # type: ignore[override]
        assert self.grad_scale is not None
        assert self.found_inf is not None
        for group in self.param_groups:
            for value in group["params"]:
                rate = 0.1 * (1.0 - self.found_inf) / self.grad_scale
                value.data.sub_(rate * value.grad)


def train_scaled(folder: Path) -> dict[str, Any]:
    never_by_itself()
    model = moved(made(mlp))
    run = nbp.watch(model, store=folder / "r.zarr", probes={"0.weight": ["grad_norm"]}, budget=None)
    optimizer = Scaled(model.parameters())
    expected = []
    for step in range(4):
        for value in model.parameters():
            value.grad = None
        loss_on(model(on_device(batch(step)))).mul(1024.0).backward()
        gradient = model.get_parameter("0.weight").grad
        assert gradient is not None
        expected.append(float(host(gradient).double().norm()) / 1024.0)
        optimizer.grad_scale = on_device(torch.tensor(1024.0))
        optimizer.found_inf = on_device(torch.tensor(1.0 if step == 1 else 0.0))
        optimizer.step()
        optimizer.found_inf.zero_()  # a scaler clears it for the next step
    n_waits, n_copies = len(waits), len(copies)
    run.close()
    return {
        "skipped": run.series("", "skipped").values.tolist(),
        "found": run.series("0.weight", "grad_norm").values,
        "expected": expected,
        "waited": (n_waits, n_copies),
    }


def test_a_scalers_skipped_step_is_marked_without_asking_the_device(
    accelerator: Accelerator, tmp_path: Path
) -> None:
    told = accelerator.run(train_scaled, tmp_path)
    assert told["skipped"] == [0.0, 1.0, 0.0, 0.0]
    np.testing.assert_allclose(told["found"], told["expected"], rtol=1e-5)
    assert told["waited"] == (0, 0)


def unreadable(folder: Path) -> dict[str, Any]:
    """A device whose values cannot be brought over: gaps, and the training goes on."""
    never_by_itself()
    model = moved(made(mlp))
    run = nbp.watch(model, store=folder / "r.zarr", probes={"0": ["output_norm"]}, budget=None)
    optimizer = SGD(model.parameters(), lr=0.1)
    for step in range(2):
        loss_on(model(on_device(batch(step)))).backward()
        optimizer.step()
        run.log(number=torch.ones((), device="meta"), step_number=step)
    run.close()
    data = run.data.load()
    return {
        "steps": data.step.values.tolist(),
        "found": int(data.output_norm.sel(module="0").notnull().sum()),
        "number": data.number.sel(module="(root)").values.tolist(),
        "step_number": data.step_number.sel(module="(root)").values.tolist(),
    }


def test_what_no_device_gives_is_a_gap_beside_what_others_give(
    accelerator: Accelerator, tmp_path: Path
) -> None:
    told = accelerator.run(unreadable, tmp_path)
    assert told["steps"] == [0, 1]
    assert told["found"] == 2
    assert all(math.isnan(value) for value in told["number"])
    assert told["step_number"] == [0.0, 1.0]
