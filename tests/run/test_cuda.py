"""Models on a CUDA device: no step waits for it, and the numbers are those of the host."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Adam, Optimizer

import notebook_probe as nbp
from tests.models import ConvNet, Encoder, floats, made, mlp, words
from tests.run.conftest import Watch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
]

STEPS = range(4)
EVERYTHING = [
    "input_norm", "input_mean", "input_std", "output_norm", "output_mean", "output_std",
    "output_grad_norm", "zero_fraction", "nonfinite_fraction",
]  # fmt: skip
OF_WEIGHTS = ["weight_norm", "grad_norm", "update_ratio"]


@contextmanager
def no_waiting() -> Iterator[None]:
    """Whatever would wait for the device raises in here."""
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


def largest(output: Tensor) -> Tensor:
    return output.abs().amax()


def slope(weight: Tensor, grad: Tensor) -> Tensor:
    return (weight * grad).sum()


def train(model: nn.Module, optimizer: Optimizer, batches: Sequence[Tensor]) -> None:
    with torch.backends.cudnn.flags(allow_tf32=False):
        for batch in batches:
            optimizer.zero_grad()
            model(batch).square().mean().backward()
            optimizer.step()


KINDS: dict[str, tuple[Callable[[], nn.Module], Callable[[int], Tensor]]] = {
    "mlp": (mlp, floats(5, 4)),
    "convolution": (lambda: ConvNet(inplace=False), floats(4, 1, 6, 6)),
    "transformer": (lambda: Encoder(dropout=0.0), words),
}


@pytest.mark.parametrize("kind", KINDS)
def test_no_step_waits_and_the_numbers_are_those_of_the_cpu(kind: str, watch: Watch) -> None:
    build, batches = KINDS[kind]
    here, there = made(build), made(build).cuda()
    runs = [watch(model, probes={"*": [*EVERYTHING, largest]}) for model in (here, there)]
    for run in runs:
        run.attach("*", [*OF_WEIGHTS, slope])
    given = [batches(step) for step in STEPS]
    train(here, Adam(here.parameters(), lr=0.01), given)
    far = [batch.cuda() for batch in given]
    with no_waiting():
        train(there, Adam(there.parameters(), lr=0.01), far)
    mine, its = (run.data.load() for run in runs)
    assert its.step.values.tolist() == [0, 1, 2, 3]
    assert set(mine.data_vars) == set(its.data_vars)
    for quantity in mine.data_vars:
        np.testing.assert_allclose(
            its[quantity], mine[quantity], rtol=1e-3, atol=1e-5, err_msg=str(quantity)
        )
    assert not runs[1].status().errors
    assert runs[1].status().problem == ""


def test_training_is_the_same_with_and_without_a_watcher(watch: Watch) -> None:
    ends = []
    for watched in (False, True):
        model = made(mlp).cuda()
        run = watch(model) if watched else None
        given = [floats(5, 4)(step).cuda() for step in STEPS]
        train(model, SGD(model.parameters(), lr=0.1, momentum=0.9), given)
        if run is not None:
            run.controls.settle()
        ends.append([value.detach().cpu() for value in model.parameters()])
    assert all(map(torch.equal, *ends))


def test_what_is_logged_and_collected_stays_on_the_device_too(watch: Watch) -> None:
    class Says(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            nbp.collect("peak", x.amax(), combine="max")
            return self.linear(x)

    model = made(Says).cuda()
    run = watch(model, probes=None)
    optimizer = SGD(model.parameters(), lr=0.1)
    batches = [floats(5, 4)(step) for step in STEPS]
    far = [batch.cuda() for batch in batches]
    with no_waiting():
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


def test_histograms_and_spectra_wait_for_nothing_either(watch: Watch) -> None:
    names = ["weight_histogram", "output_histogram", "input_cov_max_eig"]
    here, there = made(mlp), made(mlp).cuda()
    runs = [watch(model, probes={"0": names}) for model in (here, there)]
    given = [floats(9, 4)(step) for step in STEPS]
    train(here, SGD(here.parameters(), lr=0.1), given)
    far = [batch.cuda() for batch in given]
    with no_waiting():
        train(there, SGD(there.parameters(), lr=0.1), far)
    mine, its = (run.data.load() for run in runs)
    assert not runs[1].status().errors
    for name in names:
        np.testing.assert_allclose(its[name], mine[name], rtol=1e-3, err_msg=name)
