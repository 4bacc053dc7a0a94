"""Steps at rest whose loss is on an accelerator: none is published for its sake, none is lost."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.optim import SGD

import notebook_probe as nbp
from benchmarks.calls import calls_of
from notebook_probe.probes import step_sequence
from notebook_probe.probes.reading import closed_losses, closed_steps
from tests.models import floats, made, mlp
from tests.run.accelerator import Accelerator, host, moved, on_device, waits

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("accelerator")]

N_STEPS, DUE, WARM = 60, nbp.Every(9), 24
AT_REST = 26
"""Most calls of ours in a step at rest: reading the loss takes seven more than on the host."""
batch = floats(5, 4)


def passed_on(logged_loss: float) -> float:
    """Return the loss of the step, which is measured because the loop does not log it."""
    return logged_loss


class Trained:
    """A training whose loss is recorded in every step, and a norm in some."""

    def __init__(self, store: Path, is_on_device: bool, due: nbp.Schedule) -> None:
        self.put = on_device if is_on_device else torch.clone
        self.model = moved(made(mlp)) if is_on_device else made(mlp)
        self.optimizer = SGD(self.model.parameters(), lr=0.1, foreach=False)
        self.run = nbp.watch(self.model, store=store, probes=[], budget=None)
        self.run.attach("", passed_on, due)
        self.run.attach("*", "output_norm", due)
        self.n_waits = 0

    def step(self, number: int) -> float:
        """Train a step, and return its loss without asking the device."""
        inputs, before = self.put(batch(number)), len(waits)
        self.optimizer.zero_grad()
        loss = self.model(inputs).square().mean()
        loss.backward()
        self.optimizer.step()
        self.n_waits += len(waits) - before
        return host(loss).item()


def calls_at_rest(store: Path) -> int:
    step_sequence.KEEP_S = math.inf
    training = Trained(store, True, nbp.Steps({10**9}))
    for number in range(WARM):
        training.step(number)
    found = min(calls_of(lambda: training.step(0), 1).total() for _ in range(8))
    training.run.close()
    return found


def losses_of_both(folder: Path) -> dict[str, tuple[list[float], list[float], list[int], int]]:
    step_sequence.KEEP_S = 0.0  # each step at rest is accounted for, and a copy is begun
    closed_steps.COPY_S = 0.0
    found = {}
    for place in ("host", "device"):
        training = Trained(folder / f"{place}.zarr", place == "device", DUE)
        losses = [training.step(number) for number in range(N_STEPS)]
        training.run.close()
        run = nbp.open_run(folder / f"{place}.zarr")
        series, norms = run.series("", "backward_loss"), run.series("0", "output_norm")
        assert [*series.coords["step"].values] == [*range(N_STEPS)]
        norms = [*norms.coords["step"].values]
        found[place] = losses, series.values.tolist(), norms, training.n_waits
    return found


def read_while_it_trains(store: Path) -> tuple[list[float], list[float]]:
    step_sequence.KEEP_S = closed_steps.COPY_S = math.inf  # only what is asked for
    training = Trained(store, True, nbp.Steps({3}))
    losses = [training.step(number) for number in range(N_STEPS)]
    read = training.run.series("", "backward_loss").values.tolist()
    training.run.close()
    return losses, read


def lost(store: Path) -> tuple[int, list[str]]:
    """Train on while a copy of losses fails."""
    step_sequence.KEEP_S = closed_steps.COPY_S = 0.0
    training = Trained(store, True, nbp.Steps({10**9}))
    for number in range(WARM):
        training.step(number)
    whole = closed_losses.HostBatch

    def fails(tensors: list[Tensor]) -> NoReturn:
        closed_losses.HostBatch = whole  # type: ignore[misc]
        raise RuntimeError("the device is busy")

    closed_losses.HostBatch = fails  # type: ignore[misc,assignment]
    for number in range(WARM):
        training.step(number)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        training.run.close()
    recorded = nbp.open_run(store).series("", "backward_loss")
    return len(recorded), [str(one.message) for one in found]


def test_a_step_at_rest_on_a_device_costs_a_few_calls(
    accelerator: Accelerator, tmp_path: Path
) -> None:
    assert accelerator.run(calls_at_rest, tmp_path / "a.zarr") <= AT_REST


def test_every_loss_is_recorded_in_order_and_no_step_waits(
    accelerator: Accelerator, tmp_path: Path
) -> None:
    found = accelerator.run(losses_of_both, tmp_path)
    for losses, recorded, norms, n_waits in found.values():
        np.testing.assert_array_equal(np.float32(losses), np.float32(recorded))
        assert norms == [*range(0, N_STEPS, 9)]
        assert n_waits == 0
    np.testing.assert_allclose(found["host"][0], found["device"][0], rtol=1e-6)


def test_losses_at_rest_are_read_while_it_trains(accelerator: Accelerator, tmp_path: Path) -> None:
    losses, read = accelerator.run(read_while_it_trains, tmp_path / "a.zarr")
    assert len(read) >= N_STEPS - 1, "that of the open step comes with the next one"
    assert read == np.float32(losses[: len(read)]).tolist()


def test_a_copy_of_losses_that_fails_ends_no_training(
    accelerator: Accelerator, tmp_path: Path
) -> None:
    n_losses, errors = accelerator.run(lost, tmp_path / "a.zarr")
    assert n_losses == 2 * WARM - 1
    assert len(errors) == 1
    assert "1 row was lost: step" in errors[0]
    assert "RuntimeError: the device is busy" in errors[0]
