"""Models on an accelerator: no step waits for it, and what was measured comes in one copy."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, AdamW

import notebook_probe as nbp
from notebook_probe.probes.reading import closed_steps
from tests.models import ConvNet, Encoder, floats, made, mlp, words
from tests.probes.reading.on_accelerator import everywhere, loss_on, never_by_itself
from tests.run.accelerator import PATIENCE_S, Accelerator, copies, host, moved, on_device, waits

batch = floats(5, 4)


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
            run = nbp.watch(
                model, store=folder / f"{place}.zarr", probes=everywhere(model), budget=None
            )
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
    run = nbp.watch(model, store=folder / "r.zarr", probes={"0": ["output_norm"]}, budget=None)
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
    closed_steps.COPY_S = 0.0
    model = moved(made(mlp))
    run = nbp.watch(model, store=folder / "r.zarr", probes={"0": ["output_norm"]}, budget=None)
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
        run = nbp.watch(
            model, store=folder / f"{place}.zarr", probes=everywhere(model), budget=None
        )
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


# ---------------------------------------------------------------- readers beside the training


def train_while_read(folder: Path) -> dict[str, Any]:
    closed_steps.COPY_S = 0.001
    model = moved(made(mlp))
    run = nbp.watch(model, store=folder / "r.zarr", probes=everywhere(model), budget=None)
    optimizer = SGD(model.parameters(), lr=0.1)
    over, looked = threading.Event(), threading.Event()
    seen: list[list[int]] = []
    errors: list[BaseException] = []

    def read() -> None:
        try:
            while not over.is_set():
                data = run.data.load()
                seen.append(data.step.values.tolist())
                looked.set()
        except BaseException as error:
            errors.append(error)
            looked.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    for step in range(30):
        optimizer.zero_grad()
        loss_on(model(on_device(batch(step)))).backward()
        optimizer.step()
        if step == 10:  # a busy machine may not get round to it
            looked.wait(PATIENCE_S)
    over.set()
    reader.join(PATIENCE_S)
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
    assert told["steps"] == list(range(30))
    assert told["gaps"] == 0
    assert told["in_order"]
    assert told["n_seen"] > 0
