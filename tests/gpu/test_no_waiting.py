"""No step of any loop waits for the device: of its own it may, of ours it never does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, AdamW, Optimizer
from torch.utils.checkpoint import checkpoint

import notebook_probe as nbp
from notebook_probe.probes.reading import closed_steps
from notebook_probe.train import Loop, Trainer
from tests.gpu.conftest import OnAccelerator
from tests.gpu.devices import Device, needs_cuda, on_cuda
from tests.gpu.kinds import KINDS, loss_of_output

pytestmark = pytest.mark.xdist_group("accelerator")  # one process serves them all

STEPS = 6
KIND = KINDS["gpt block"]


class Checkpointed(nn.Module):
    """Its block's activations are computed again in the backward."""

    def __init__(self) -> None:
        super().__init__()
        self.block = KIND.build()

    def forward(self, x: Tensor) -> Tensor:
        return checkpoint(self.block, x, use_reentrant=False, preserve_rng_state=False)


def a_step(model: nn.Module, optimizer: Optimizer, batch: Tensor) -> Tensor:
    optimizer.zero_grad()
    loss = loss_of_output(model(batch))
    loss.backward()
    optimizer.step()
    return loss


class Trained:
    """A model that is watched, with a batch for each step."""

    def __init__(self, device: Device, folder: Path, model: nn.Module, **options: Any) -> None:
        self.device, self.model = device, device.moved(model)
        options.setdefault("probes", ["default", "alerts"])
        self.run = nbp.watch(self.model, store=folder / "r.zarr", budget=None, **options)
        self.optimizer: Optimizer = SGD(self.model.parameters(), lr=0.05, foreach=False)
        self.batches = [device.put(KIND.batch(step)) for step in range(STEPS)]

    def eager(self) -> None:
        for batch in self.batches:
            self.run.log(loss=a_step(self.model, self.optimizer, batch))

    def accumulating(self) -> None:
        for batch in self.batches:
            self.optimizer.zero_grad()
            for _ in range(3):
                loss_of_output(self.model(batch)).backward()
            self.optimizer.step()

    def in_streams(self) -> None:
        """Every forward on a stream of its own, which the backward follows."""
        for batch in self.batches:
            with self._stream():
                a_step(self.model, self.optimizer, batch)

    @contextmanager
    def _stream(self) -> Iterator[None]:
        if not self.device.is_cuda:
            yield
            return
        before, stream = torch.cuda.current_stream(), torch.cuda.Stream()
        stream.wait_stream(before)
        with torch.cuda.stream(stream):
            yield
        before.wait_stream(stream)

    def in_half_precision(self) -> None:
        with torch.autocast("cuda", dtype=torch.bfloat16) if self.device.is_cuda else nullcontext():
            self.eager()

    def scaled(self) -> None:
        """A fused optimizer skips a step on the device: another one asks whether to."""
        self.optimizer = AdamW(self.model.parameters(), lr=1e-3, fused=True)
        scaler = torch.amp.GradScaler(self.device.type)
        for batch in self.batches:
            self.optimizer.zero_grad()
            with torch.autocast(self.device.type, dtype=torch.float16):
                loss = loss_of_output(self.model(batch))
            scaler.scale(loss).backward()
            scaler.step(self.optimizer)
            scaler.update()

    def with_breakpoints(self) -> None:
        self.run.pause_when("", "loss", "> 1e9")
        self.run.pause_when(nan=True)
        self.run.pause_when(alert="severe")
        self.eager()

    def flushed_at_every_step(self) -> None:
        closed_steps.COPY_S = 0.0
        self.eager()

    def with_alerts(self) -> None:
        for batch in self.batches:
            self.run.log(loss=a_step(self.model, self.optimizer, batch))
            self.run.log(lr=0.05)

    def looked_at(self) -> None:
        """Two looks in a row: the second is asked for before the first has come."""
        for batch in self.batches:
            self.run.look("mlp.0")
            a_step(self.model, self.optimizer, batch)

    def in_a_loop(self) -> None:
        trainer = Trainer(self.model, lambda output, _: loss_of_output(output), self.optimizer)
        loop = Loop(trainer, run=self.run, check_finite=False)
        loop.run_steps([(batch, batch) for batch in self.batches], STEPS)


MODELS: dict[str, Callable[[], nn.Module]] = {"checkpointed": Checkpointed}
LOOPS = {
    "eager": Trained.eager,
    "accumulating": Trained.accumulating,
    "in streams": Trained.in_streams,
    "in half precision": Trained.in_half_precision,
    "with breakpoints": Trained.with_breakpoints,
    "flushed at every step": Trained.flushed_at_every_step,
    "with alerts": Trained.with_alerts,
    "looked at": Trained.looked_at,
    "in a loop": Trained.in_a_loop,
}
ON_CUDA_ALONE = {"checkpointed": Trained.eager, "scaled": Trained.scaled}
"""What torch does on few devices."""


def trained(device: Device, folder: Path, loop: str) -> dict[str, Any]:
    closed_steps.COPY_S = 1e9
    one = Trained(device, folder, MODELS.get(loop, KIND.made)())
    a_step(one.model, one.optimizer, one.batches[0])  # what is set up once may wait
    one.run.controls.settle()
    with device.no_waiting() as waited:
        (LOOPS | ON_CUDA_ALONE)[loop](one)
    one.run.close()
    data = one.run.data.load()
    return {
        "waits": waited.calls,
        "errors": [(probe.quantity, probe.error) for probe in one.run.status().errors],
        "problem": one.run.status().problem,
        "n_steps": int(data.output_norm.notnull().any("module").sum()),
    }


@pytest.mark.parametrize("loop", LOOPS)
def test_no_step_waits(loop: str, on_accelerator: OnAccelerator, tmp_path: Path) -> None:
    told = on_accelerator(trained, tmp_path, loop)
    assert told["waits"] == []
    assert told["errors"] == []
    assert told["problem"] == ""
    assert told["n_steps"] == 1 + STEPS


@needs_cuda
@pytest.mark.parametrize("loop", ON_CUDA_ALONE)
def test_no_step_waits_on_cuda(loop: str, tmp_path: Path) -> None:
    test_no_step_waits(loop, on_cuda, tmp_path)


def trained_without(device: Device, folder: Path) -> list[str]:
    """As the others, but somebody asks for the loss: the healthy check is not blind."""
    one = Trained(device, folder, KIND.made())
    with device.no_waiting() as waited:
        a_step(one.model, one.optimizer, one.batches[0]).item()
    one.run.close()
    return waited.calls


def test_a_step_that_waits_is_found(on_accelerator: OnAccelerator, tmp_path: Path) -> None:
    try:
        waits = on_accelerator(trained_without, tmp_path)
    except RuntimeError as error:
        waits = [str(error)]
    assert len(waits) == 1


def values_of(device: Device, folder: Path, copies_often: bool) -> Any:
    """The norms of many steps, copied while they train or all at the end."""
    closed_steps.COPY_S = 0.0 if copies_often else 1e9
    one = Trained(device, folder, KINDS["mlp"].made(), probes={"0": ["output_norm", "grad_norm"]})
    batches = [device.put(KINDS["mlp"].batch(n)) for n in range(8)]
    for step in range(2000 if device.is_cuda else 40):
        a_step(one.model, one.optimizer, batches[step % 8])
    one.run.close()
    data = one.run.data.load()
    return np.stack([data.output_norm.sel(module="0"), data.grad_norm.sel(module="0")])


def test_copies_under_load_bring_the_values_of_a_copy_at_the_end(
    on_accelerator: OnAccelerator, tmp_path: Path
) -> None:
    often = on_accelerator(values_of, tmp_path / "often", True)
    at_the_end = on_accelerator(values_of, tmp_path / "end", False)
    assert np.isfinite(often).all()
    np.testing.assert_array_equal(often, at_the_end)
