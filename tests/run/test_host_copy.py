"""Models on an accelerator: no step waits for it, and what was measured comes in one copy."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW, Optimizer

import notebook_probe as nbp
from notebook_probe.run import rows
from tests.models import ConvNet, Encoder, floats, made, mlp, words
from tests.run.accelerator import Accelerator, copies, host, moved, on_device, waits

batch = floats(5, 4)

INPUT = ["input_norm", "input_mean", "input_std", "input_grad_norm"]
OUTPUT = ["output_norm", "output_mean", "output_std", "zero_fraction", "nonfinite_fraction"]
FORWARD = [*INPUT, *OUTPUT, "output_grad_norm"]
WEIGHT = ["weight_norm", "grad_norm", "update_ratio", "grad_raw_norm"]


@pytest.fixture(scope="module")
def accelerator() -> Iterator[Accelerator]:
    one = Accelerator()
    yield one
    one.end()


def never_by_itself() -> None:
    """No copy because time has passed: only what is asked for."""
    rows.COPY_S = math.inf


def everywhere(model: nn.Module) -> dict[str, list[str]]:
    leaves = [path for path, module in model.named_modules() if path and not module._modules]
    parameters = [name for name, _ in model.named_parameters()]
    return {**dict.fromkeys(leaves, FORWARD), **dict.fromkeys(parameters, WEIGHT)}


def loss_on(output: Tensor) -> Tensor:
    return (output - 0.3).square().mean()


OPTIMIZERS: dict[str, Any] = {
    "sgd": lambda values: SGD(values, lr=0.1, momentum=0.9),
    "adam": lambda values: Adam(values, lr=0.01),
    "adamw": lambda values: AdamW(values, lr=0.01, weight_decay=0.1),
}
MODELS: dict[str, tuple[Any, Any]] = {
    "mlp": (mlp, batch),
    "convolution": (lambda: ConvNet(inplace=True), floats(4, 1, 6, 6)),
    "transformer": (lambda: Encoder(dropout=0.0), words),
}


def train_both(folder: Path, kind: str, optimizer: str) -> dict[str, Any]:
    """On the host and on the device, both watched, and on the device once more, not watched."""
    never_by_itself()
    build, data = MODELS[kind]
    recorded, left = [], []
    n_waits = n_copies = 0
    for place in ("host", "device", "unwatched"):
        model = made(build) if place == "host" else moved(made(build))
        run = None
        if place != "unwatched":
            run = nbp.watch(model, store=folder / f"{place}.zarr", probes=everywhere(model))
        stepping = OPTIMIZERS[optimizer](model.parameters())
        waits.clear()
        for step in range(4):
            given = data(step) if place == "host" else on_device(data(step))
            stepping.zero_grad()
            loss_on(model(given)).backward()
            stepping.step()
        if run is None:
            n_unwatched = len(waits)
        elif place == "device":
            n_waits, n_copies = len(waits), len(copies)
            copies.clear()
        if run is not None:
            run.close()
            found = run.data.load()
            recorded.append({str(name): found[name].values for name in found.data_vars})
            problem = run.status().problem, [probe.error for probe in run.status().errors]
        if place == "device":
            n_final = len(copies)
        if place != "host":
            left.append([host(value).numpy().copy() for value in model.parameters()])
    return {
        "recorded": recorded,
        "left": left,
        "waits": n_waits - n_unwatched,
        "copies": n_copies,
        "final": n_final,
        "problem": problem,
    }


@pytest.mark.parametrize(
    ("kind", "optimizer"),
    [("mlp", "sgd"), ("mlp", "adam"), ("convolution", "adamw"), ("transformer", "sgd")],
)
def test_no_step_waits_for_the_device_and_its_values_are_those_of_the_host(
    kind: str, optimizer: str, accelerator: Accelerator, tmp_path: Path
) -> None:
    told = accelerator.run(train_both, tmp_path, kind, optimizer)
    assert told["problem"] == ("", [])
    on_host, on_device_ = told["recorded"]
    assert on_host.keys() == on_device_.keys()
    for name, values in on_host.items():
        np.testing.assert_allclose(on_device_[name], values, rtol=1e-4, atol=1e-6, err_msg=name)
        assert np.isfinite(values).any(), name
    for watched, unwatched in zip(*told["left"], strict=True):
        np.testing.assert_array_equal(watched, unwatched)
    assert told["waits"] == 0
    assert told["copies"] == 0
    assert told["final"] == 1, "all steps in one copy"


# ---------------------------------------------------------------- when it is copied


def train_and_read(folder: Path) -> dict[str, Any]:
    never_by_itself()
    model = moved(made(mlp))
    run = nbp.watch(model, store=folder / "r.zarr", probes={"0": ["output_norm"]})
    optimizer = SGD(model.parameters(), lr=0.1)
    counted = []

    def step(n: int) -> None:
        optimizer.zero_grad()
        loss_on(model(on_device(batch(n)))).backward()
        optimizer.step()

    for n in range(6):
        step(n)
    counted.append(len(copies))
    first = run.series("0", "output_norm").step.values.tolist()
    counted.append(len(copies))
    again = run.series("0", "output_norm").values.tolist()
    counted.append(len(copies))
    step(6)
    run.flush()
    stored = nbp.open_run(run.location).data.step.values.tolist()
    run.close()
    return {"counted": counted, "first": first, "again": again, "stored": stored}


def test_what_is_read_is_copied_then_and_only_once(
    accelerator: Accelerator, tmp_path: Path
) -> None:
    """The open step is provisional: it comes along each time, the closed ones come once."""
    told = accelerator.run(train_and_read, tmp_path)
    before, once, twice = told["counted"]
    assert before == 0
    assert once == 2, "the five that are closed, and the one that is open"
    assert twice - once == 1, "the open one again"
    assert told["first"] == [0, 1, 2, 3, 4, 5]
    assert len(told["again"]) == 6
    assert told["stored"] == [0, 1, 2, 3, 4, 5]


def train_with_copies(folder: Path) -> dict[str, Any]:
    rows.COPY_S = 0.0
    model = moved(made(mlp))
    run = nbp.watch(model, store=folder / "r.zarr", probes={"0": ["output_norm"]})
    optimizer = SGD(model.parameters(), lr=0.1)
    per_step = []
    for n in range(8):
        copies.clear()
        optimizer.zero_grad()
        loss_on(model(on_device(batch(n)))).backward()
        optimizer.step()
        per_step.append(len(copies))
    n_waits = len(waits)
    run.close()
    steps = run.data.step.values.tolist()
    return {"per_step": per_step, "waits": n_waits, "steps": steps}


def test_at_most_one_copy_is_begun_per_step(accelerator: Accelerator, tmp_path: Path) -> None:
    told = accelerator.run(train_with_copies, tmp_path)
    assert max(told["per_step"]) == 1
    assert told["waits"] == 0
    assert told["steps"] == list(range(8))


# ---------------------------------------------------------------- mixed devices, order


class Split(nn.Module):
    """Its first half on the device, its second on the host."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.first(x)
        if self.first.weight.device.type != "cpu":
            hidden = Across.apply(hidden)
        return self.second(hidden)


class Across(torch.autograd.Function):
    """From the device to the host, and the gradient back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return host(x).clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return on_device(gradient)


def train_split(folder: Path, moves: bool) -> dict[str, Any]:
    """``moves``: after three steps all of it comes to the host, and later goes back."""
    never_by_itself()
    told: dict[str, Any] = {}
    for place in ("host", "device"):
        model = made(Split)
        run = nbp.watch(model, store=folder / f"{place}.zarr", probes=everywhere(model))
        if place == "device":
            moved(model.first)
        for step in range(8):
            if moves and place == "device" and step in (3, 6):
                for name, value in [*model.first._parameters.items()]:
                    assert value is not None
                    here = host(value).clone() if step == 3 else on_device(value)
                    model.first._parameters[name] = nn.Parameter(here)
            optimizer = SGD(model.parameters(), lr=0.1)
            optimizer.zero_grad()
            there = model.first.weight.device.type != "cpu"
            loss = loss_on(model(on_device(batch(step)) if there else batch(step)))
            loss.backward()
            optimizer.step()
            run.log(loss=loss.detach(), step_number=step)
        run.close()
        data = nbp.open_run(run.location).data.load()
        told[place] = {str(name): data[name].values for name in data.data_vars}
        told[f"{place} steps"] = data.step.values.tolist()
    return told


@pytest.mark.parametrize("moves", [False, True])
def test_steps_stay_in_order_where_only_some_values_are_on_the_device(
    moves: bool, accelerator: Accelerator, tmp_path: Path
) -> None:
    told = accelerator.run(train_split, tmp_path, moves)
    assert told["device steps"] == told["host steps"] == list(range(8))
    for name, values in told["host"].items():
        np.testing.assert_allclose(told["device"][name], values, rtol=1e-4, atol=1e-6, err_msg=name)


# ---------------------------------------------------------------- values of other kinds


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
    run = nbp.watch(model, store=folder / "r.zarr", probes={"linear": [share]})
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
    run = nbp.watch(model, store=folder / "r.zarr", probes={"0.weight": ["grad_norm"]})
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


# ---------------------------------------------------------------- readers beside the training


def train_while_read(folder: Path) -> dict[str, Any]:
    rows.COPY_S = 0.001
    model = moved(made(mlp))
    run = nbp.watch(model, store=folder / "r.zarr", probes=everywhere(model))
    optimizer = SGD(model.parameters(), lr=0.1)
    over = threading.Event()
    seen: list[list[int]] = []
    errors: list[BaseException] = []

    def read() -> None:
        try:
            while not over.is_set():
                data = run.data.load()
                seen.append(data.step.values.tolist())
        except BaseException as error:
            errors.append(error)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    for step in range(60):
        optimizer.zero_grad()
        loss_on(model(on_device(batch(step)))).backward()
        optimizer.step()
    over.set()
    reader.join(60)
    run.close()
    data = run.data.load()
    return {
        "errors": [repr(error) for error in errors],
        "problem": run.status().problem,
        "steps": data.step.values.tolist(),
        "gaps": int(np.isnan(data.output_norm.sel(module="0")).sum()),
        "in_order": all(steps == list(range(len(steps))) for steps in seen),
        "n_seen": len(seen),
    }


def test_a_reader_in_another_thread_sees_whole_steps_in_order(
    accelerator: Accelerator, tmp_path: Path
) -> None:
    told = accelerator.run(train_while_read, tmp_path)
    assert told["errors"] == []
    assert told["problem"] == ""
    assert told["steps"] == list(range(60))
    assert told["gaps"] == 0
    assert told["in_order"]
    assert told["n_seen"] > 0


def unreadable(folder: Path) -> dict[str, Any]:
    """A device whose values cannot be brought over: gaps, and the training goes on."""
    never_by_itself()
    model = moved(made(mlp))
    run = nbp.watch(model, store=folder / "r.zarr", probes={"0": ["output_norm"]})
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
