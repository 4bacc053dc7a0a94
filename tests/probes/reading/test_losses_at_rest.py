"""Steps at rest whose numbers are on an accelerator: none is published for them, none is lost."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
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

N_STEPS, WARM = 60, 24
DUE, NEVER = nbp.Every(9), nbp.Steps({10**9})
AT_REST = 26
"""Most calls of ours in a step at rest: reading the loss takes seven more than on the host."""
batch = floats(5, 4)


def passed_on(logged_loss: float) -> float:
    """Return the loss of the step, which is measured because the loop does not log it."""
    return logged_loss


@contextmanager
def handing_on(keep_s: float, copy_s: float) -> Iterator[pytest.MonkeyPatch]:
    """Account for steps and begin copies after these seconds: at every step, or never."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step_sequence, "KEEP_S", keep_s)
        patch.setattr(closed_steps, "COPY_S", copy_s)
        yield patch


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
        self.losses: list[float] = []

    def step(self, log: bool = False) -> None:
        """Train a step, and keep its loss without asking the device."""
        number = len(self.losses)
        inputs, before = self.put(batch(number)), len(waits)
        self.optimizer.zero_grad()
        loss = self.model(inputs).square().mean()
        loss.backward()
        self.optimizer.step()
        if log:
            self.run.log(train_loss=loss.detach(), number=number)
        self.n_waits += len(waits) - before
        self.losses.append(host(loss).item())

    def steps(self, n: int, log: bool = False) -> None:
        for _ in range(n):
            self.step(log)


def calls_at_rest(store: Path) -> int:
    with handing_on(math.inf, math.inf):
        training = Trained(store, True, NEVER)
        training.steps(WARM)
        found = min(calls_of(training.step, 1).total() for _ in range(8))
        training.run.close()
    return found


def recorded(store: Path, name: str, module: str = "") -> tuple[list[int], list[float]]:
    series = nbp.open_run(store).series(module, name)
    return series.coords["step"].values.tolist(), series.values.tolist()


def trained(store: Path, is_on_device: bool, log: bool) -> tuple[list[float], int]:
    with handing_on(0.0, 0.0):
        training = Trained(store, is_on_device, DUE)
        training.steps(N_STEPS, log)
        training.run.close()
    return training.losses, training.n_waits


def read_while_it_trains(store: Path) -> tuple[list[float], list[float]]:
    with handing_on(math.inf, math.inf):
        training = Trained(store, True, nbp.Steps({3}))
        training.steps(N_STEPS)
        read: list[float] = training.run.series("", "backward_loss").values.tolist()
        training.run.close()
    return training.losses, read


def lost(store: Path) -> tuple[int, list[str]]:
    """Train while a copy of losses fails, once."""
    with handing_on(0.0, 0.0):
        training = Trained(store, True, NEVER)
        training.steps(WARM)
        with pytest.MonkeyPatch.context() as patch:

            def fails(tensors: list[Tensor]) -> NoReturn:
                patch.undo()
                raise RuntimeError("the device is busy")

            patch.setattr(closed_losses, "HostBatch", fails)
            training.steps(WARM)
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            training.run.close()
    return len(recorded(store, "backward_loss")[0]), [str(one.message) for one in found]


def test_a_step_at_rest_on_a_device_costs_a_few_calls(
    accelerator: Accelerator, tmp_path: Path
) -> None:
    assert accelerator.run(calls_at_rest, tmp_path / "a.zarr") <= AT_REST


@pytest.mark.parametrize("is_on_device", [False, True])
def test_every_loss_is_recorded_in_order_and_no_step_waits(
    is_on_device: bool, accelerator: Accelerator, tmp_path: Path
) -> None:
    store = tmp_path / "a.zarr"
    losses, n_waits = accelerator.run(trained, store, is_on_device, False)
    steps, values = recorded(store, "backward_loss")
    assert steps == [*range(N_STEPS)]
    assert values == np.asarray(losses, np.float32).tolist()
    assert recorded(store, "output_norm", "0")[0] == [*range(0, N_STEPS, 9)]
    assert n_waits == 0


@pytest.mark.parametrize("is_on_device", [False, True])
def test_every_logged_number_is_recorded_in_order_and_no_step_waits(
    is_on_device: bool, accelerator: Accelerator, tmp_path: Path
) -> None:
    store = tmp_path / "a.zarr"
    losses, n_waits = accelerator.run(trained, store, is_on_device, True)
    for name, expected in {"train_loss": losses, "number": [*range(N_STEPS)]}.items():
        steps, values = recorded(store, name)
        assert steps == [*range(N_STEPS)]
        assert values == np.asarray(expected, np.float32).tolist()
    assert recorded(store, "output_norm", "0")[0] == [*range(0, N_STEPS, 9)]
    assert n_waits == 0


def test_losses_at_rest_are_read_while_it_trains(accelerator: Accelerator, tmp_path: Path) -> None:
    losses, read = accelerator.run(read_while_it_trains, tmp_path / "a.zarr")
    assert len(read) >= N_STEPS - 1, "that of the open step comes with the next one"
    assert read == np.asarray(losses[: len(read)], np.float32).tolist()


def test_a_copy_of_losses_that_fails_ends_no_training(
    accelerator: Accelerator, tmp_path: Path
) -> None:
    n_losses, errors = accelerator.run(lost, tmp_path / "a.zarr")
    assert n_losses == 2 * WARM - 1
    assert len(errors) == 1
    assert "1 row was lost: step" in errors[0]
    assert "RuntimeError: the device is busy" in errors[0]
