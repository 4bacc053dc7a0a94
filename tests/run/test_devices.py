"""Models on an accelerator: no step waits for it, and the numbers are those of the CPU.

Most of it runs on a made-up device; the tests marked ``gpu`` run the same on a real one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer

import notebook_probe as nbp
from notebook_probe.run import rows
from tests.models import ConvNet, Encoder, floats, made, mlp, words
from tests.run.conftest import Watch
from tests.run.remote import Remote, moved, waiting_is_forbidden

STEPS = range(4)
EVERYTHING = [
    "input_norm", "input_mean", "input_std", "output_norm", "output_mean", "output_std",
    "output_grad_norm", "zero_fraction", "nonfinite_fraction",
]  # fmt: skip
OF_WEIGHTS = ["weight_norm", "grad_norm", "update_ratio"]


class Device:
    """Where a model is put, and how waiting for it is noticed."""

    def model(self, model: nn.Module) -> nn.Module:
        return moved(model)

    def batch(self, batch: Tensor) -> Tensor:
        return Remote(batch)

    @contextmanager
    def no_waiting(self) -> Iterator[None]:
        with waiting_is_forbidden(), patch.object(rows, "COPY_S", math.inf):
            yield


class Cuda(Device):
    def model(self, model: nn.Module) -> nn.Module:
        return model.cuda()

    def batch(self, batch: Tensor) -> Tensor:
        return batch.cuda()

    @contextmanager
    def no_waiting(self) -> Iterator[None]:
        torch.cuda.set_sync_debug_mode("error")
        try:
            yield
        finally:
            torch.cuda.set_sync_debug_mode("default")


CUDA = pytest.param(
    Cuda(),
    id="cuda",
    marks=[
        pytest.mark.gpu,
        pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    ],
)
devices = pytest.mark.parametrize("device", [pytest.param(Device(), id="made up"), CUDA])


def largest(output: Tensor) -> Tensor:
    return output.abs().amax()


def slope(weight: Tensor, grad: Tensor) -> Tensor:
    return (weight * grad).sum()


def train(
    model: nn.Module,
    optimizer: Optimizer,
    batches: Sequence[Tensor],
    after: Callable[[int], None] = lambda step: None,
) -> None:
    for step, batch in enumerate(batches):
        optimizer.zero_grad()
        model(batch).square().mean().backward()
        optimizer.step()
        after(step)


def test_the_made_up_device_notices_who_looks_into_it() -> None:
    far = Remote(torch.ones(3))
    assert (far * 2).sum().cpu() == 6
    with pytest.raises(AssertionError, match="looks into a tensor"):
        float(far.sum())
    with waiting_is_forbidden(), pytest.raises(AssertionError, match="waited for the device"):
        far.cpu()


KINDS: dict[str, tuple[Callable[[], nn.Module], Callable[[int], Tensor]]] = {
    "mlp": (mlp, floats(5, 4)),
    "convolution": (lambda: ConvNet(inplace=False), floats(4, 1, 6, 6)),
    "transformer": (lambda: Encoder(dropout=0.0), words),
}


@devices
@pytest.mark.parametrize("kind", KINDS)
def test_no_step_waits_and_the_numbers_are_those_of_the_cpu(
    kind: str, device: Device, watch: Watch
) -> None:
    build, batches = KINDS[kind]
    here, there = made(build), device.model(made(build))
    runs = [watch(model, probes={"*": [*EVERYTHING, largest]}) for model in (here, there)]
    for run in runs:
        run.attach("*", [*OF_WEIGHTS, slope])
    given = [batches(step) for step in STEPS]
    train(here, Adam(here.parameters(), lr=0.01), given)
    far = [device.batch(batch) for batch in given]
    with device.no_waiting():
        train(there, Adam(there.parameters(), lr=0.01), far)
    mine, its = (run.data.load() for run in runs)
    assert its.step.values.tolist() == [0, 1, 2, 3]
    assert set(mine.data_vars) == set(its.data_vars)
    for quantity in mine.data_vars:
        np.testing.assert_allclose(
            its[quantity], mine[quantity], rtol=2e-4, atol=1e-6, err_msg=str(quantity)
        )
    assert not runs[1].status().errors
    assert runs[1].status().problem == ""


@devices
def test_training_is_the_same_with_and_without_a_watcher(device: Device, watch: Watch) -> None:
    ends = []
    for watched in (False, True):
        model = device.model(made(mlp))
        run = watch(model) if watched else None
        given = [device.batch(floats(5, 4)(step)) for step in STEPS]
        train(model, SGD(model.parameters(), lr=0.1, momentum=0.9), given)
        if run is not None:
            run.settle()
        ends.append([value.detach().cpu() for value in model.parameters()])
    assert all(map(torch.equal, *ends))


def test_however_many_steps_wait_one_copy_brings_them(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "COPY_S", math.inf)
    model = moved(made(mlp))
    run = watch(model)
    run.attach("*", largest)
    optimizer = SGD(model.parameters(), lr=0.1)
    train(model, optimizer, [Remote(floats(5, 4)(step)) for step in range(20)])
    run.settle()
    before = Remote.n_copies
    train(model, optimizer, [Remote(floats(5, 4)(step)) for step in range(20)])
    assert Remote.n_copies == before
    run.settle()
    assert Remote.n_copies == before + 1
    assert len(run.series("0", "output_norm")) == 40


def test_rows_of_the_host_and_of_the_device_stay_in_order(watch: Watch) -> None:
    """Steps in which only a number of the host was logged wait behind those of the device."""
    model = moved(made(mlp))
    run = watch(model, probes=None)
    run.attach("0", "output_norm", "every(3)")
    run.attach("2", largest, "every(2)")
    batches = [Remote(floats(5, 4)(step)) for step in range(9)]
    train(model, SGD(model.parameters(), lr=0.1), batches, lambda step: run.log(loss=step))
    run.close()
    kept = nbp.open_run(run.location)
    assert kept.series("", "loss").step.values.tolist() == list(range(9))
    assert kept.series("", "loss").values.tolist() == list(range(9))
    assert kept.series("0", "output_norm").step.values.tolist() == [0, 3, 6]
    assert kept.series("2", "largest").step.values.tolist() == [0, 2, 4, 6, 8]


@devices
def test_what_is_logged_and_collected_stays_on_the_device_too(device: Device, watch: Watch) -> None:
    class Says(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            nbp.collect("peak", x.amax(), combine="max")
            return self.linear(x)

    model = device.model(made(Says))
    run = watch(model, probes=None)
    optimizer = SGD(model.parameters(), lr=0.1)
    batches = [floats(5, 4)(step) for step in STEPS]
    far = [device.batch(batch) for batch in batches]
    with device.no_waiting():
        for batch in far:
            optimizer.zero_grad()
            loss = model(batch).square().mean()
            loss.backward()
            optimizer.step()
            run.log(loss=loss, sum=batch.sum())
    peaks = [float(batch.max()) for batch in batches]
    np.testing.assert_allclose(run.series("", "peak"), peaks, rtol=1e-6)
    sums = [float(batch.sum()) for batch in batches]
    np.testing.assert_allclose(run.series("", "sum"), sums, rtol=1e-5)
    assert len(run.series("", "loss")) == 4


@devices
def test_histograms_and_spectra_wait_for_nothing_either(device: Device, watch: Watch) -> None:
    names = ["weight_histogram", "output_histogram", "input_cov_max_eig"]
    here, there = made(mlp), device.model(made(mlp))
    runs = [watch(model, probes={"0": names}) for model in (here, there)]
    given = [floats(9, 4)(step) for step in STEPS]
    train(here, SGD(here.parameters(), lr=0.1), given)
    far = [device.batch(batch) for batch in given]
    with device.no_waiting():
        train(there, SGD(there.parameters(), lr=0.1), far)
    mine, its = (run.data.load() for run in runs)
    assert not runs[1].status().errors
    for name in names:
        np.testing.assert_allclose(its[name], mine[name], rtol=1e-4, err_msg=name)


def test_reading_in_the_middle_of_a_step_brings_it_and_loses_nothing(watch: Watch) -> None:
    model = moved(made(mlp))
    run = watch(model, probes={"*": ["output_norm", "weight_norm"]})
    optimizer = SGD(model.parameters(), lr=0.1)
    for step in STEPS:
        optimizer.zero_grad()
        loss = model(Remote(floats(5, 4)(step))).square().mean()
        assert run.data.sizes["step"] == step
        loss.backward()
        optimizer.step()
        assert run.data.step.values.tolist() == list(range(step + 1))
    run.settle()
    assert len(run.series("0", "output_norm")) == 4


def test_a_copy_begins_by_itself_when_the_last_one_is_long_ago(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "COPY_S", -1.0)
    model = moved(made(mlp))
    run = watch(model, probes={"0": ["output_norm"]})
    before = Remote.n_copies
    train(model, SGD(model.parameters(), lr=0.1), [Remote(floats(5, 4)(step)) for step in range(6)])
    assert Remote.n_copies > before, "nobody had to ask"
    run.settle()
    assert run.series("0", "output_norm").step.values.tolist() == [0, 1, 2, 3, 4, 5]


def test_a_device_that_fails_leaves_gaps_and_the_rows_of_the_host(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(tensor: Tensor, *args: Any) -> Tensor:
        raise RuntimeError("device lost")

    model = moved(made(mlp))
    run = watch(model, probes={"0": ["output_norm"]})
    optimizer = SGD(model.parameters(), lr=0.1)
    batches = [Remote(floats(5, 4)(step)) for step in STEPS]
    with monkeypatch.context() as patched:
        patched.setattr(Remote, "cpu", lost)
        train(model, optimizer, batches, lambda step: run.log(loss=step))
        run.settle()
    train(model, optimizer, batches)
    run.settle()
    assert run.series("", "loss").values.tolist() == [0, 1, 2, 3]
    found = run.data.output_norm.sel(module="0").values
    assert np.isnan(found[:4]).all()
    assert np.isfinite(found[4:]).all()
    assert run.data.step.values.tolist() == list(range(8))


def test_a_model_in_two_places_is_read_in_both(watch: Watch) -> None:
    class Split(nn.Module):
        """Its head lies on the host."""

        def __init__(self) -> None:
            super().__init__()
            self.far, self.near = moved(nn.Linear(4, 4)), nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            there = self.far(Remote(x))
            return self.near(x) * there.detach().inner.mean()

    model = made(Split)
    run = watch(model, probes={("far", "near"): ["output_norm", "weight_norm"]})
    optimizer = SGD(model.near.parameters(), lr=0.1)
    train(model, optimizer, [floats(5, 4)(step) for step in STEPS])
    for place in ("far", "near"):
        for quantity in ("output_norm", "weight_norm"):
            assert np.isfinite(run.series(place, quantity)).all()
            assert run.series(place, quantity).step.values.tolist() == [0, 1, 2, 3]
