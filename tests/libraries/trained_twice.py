"""One training by somebody's trainer, alone and watched, and what must be true of the two."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
import xarray as xr
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.data import TensorDataset

import notebook_probe as nbp
from notebook_probe.record.format.source import Event
from notebook_probe.run.health.status import Status
from tests.libraries.measured import attach_everything
from tests.libraries.observed import Step
from tests.libraries.records import near, recorded_at
from tests.libraries.witness import Witness
from tests.models import floats, made
from tests.probes.parity import differing, everything

__all__ = [
    "BATCH_SIZE",
    "CLIP",
    "N_BATCHES",
    "N_EPOCHS",
    "ONES",
    "THREES",
    "Fit",
    "Pair",
    "Scenario",
    "TrainedTwice",
    "check_clipping",
    "classifier",
    "dataset",
    "examples",
    "train_twice",
]

BATCH_SIZE, N_BATCHES, N_EPOCHS = 4, 10, 2

ONES = [1] * N_BATCHES * N_EPOCHS
THREES = [3, 3, 3, 1] * N_EPOCHS

CLIP = 0.05
"""A size of the gradient that no step of these trainings keeps below by itself."""

Fit: TypeAlias = "Callable[[nn.Module, Path], Iterable[Optimizer]]"
"""Has a model trained, with a folder for checkpoints; returns the optimizers."""


@dataclass(frozen=True)
class Scenario:
    """A way to train, and how many micro-batches each of its steps has."""

    fit: Fit
    calls: list[int] = field(default_factory=lambda: ONES)


@dataclass(frozen=True)
class Pair:
    """What the watched training recorded, and what the other one did."""

    different: list[str]
    """What is not the same, bit by bit, after both."""
    status: Status
    events: tuple[Event, ...]
    data: xr.Dataset
    steps: list[Step]
    validations: dict[int, float]
    """Updates done -> size of what the network gave in validations then."""
    prefix: str
    """Path of the network in the watched model."""

    def placed(self, values: dict[str, float]) -> dict[str, float]:
        """The values of the network by the paths that the watched model knows."""
        paths = (".".join(part for part in (self.prefix, path) if part) for path in values)
        return dict(zip((path or "(root)" for path in paths), values.values(), strict=True))

    def of_parameters(self, quantity: str) -> xr.DataArray:
        """What was recorded of every trained parameter, dims (module, step)."""
        places = list(self.placed(self.steps[0].parameters["grad_norm"]))
        return self.data[quantity].sel(module=places, step=range(len(self.steps)))


def check_clipping(pair: Pair) -> None:
    """``grad`` is what is left of ``grad_raw``, all parameters scaled down by the same factor."""
    clipped, raw = pair.of_parameters("grad_norm"), pair.of_parameters("own_raw_grad")
    total = (raw**2).sum("module", skipna=False) ** 0.5
    assert (total > CLIP).all()
    np.testing.assert_allclose(clipped, raw * (CLIP / total), rtol=1e-4)


def train_twice(
    build: Callable[[], nn.Module],
    fit: Fit,
    folder: Path,
    network: str = "",
    watched: str = "",
) -> Pair:
    """Train a fresh model and its twin, watching one of them.

    Parameters
    ----------
    build : callable
        Makes what the trainer trains.
    network : str
        Path of the module whose forward is called.
    watched : str
        Path of the module that is given to `notebook_probe.watch`: the network or what holds it.
    """
    alone, model = made(build), made(build)
    prefix = network.removeprefix(watched).removeprefix(".")
    with Witness(alone.get_submodule(network)) as witness:
        left = _left_by(fit, alone, folder / "alone")
    with nbp.watch(place := model.get_submodule(watched), store=folder / "run.zarr") as run:
        attach_everything(run, place)
        run.attach(prefix, "output_norm", phase="eval")
        again = _left_by(fit, model, folder / "watched")
        status, events, data = run.status(), run.events, run.data.load()
    steps, validations = witness.steps, witness.validations
    return Pair(differing(left, again), status, events, data, steps, validations, prefix)


def _left_by(fit: Fit, model: nn.Module, folder: Path) -> dict[str, bytes]:
    torch.manual_seed(7)
    return everything(model, fit(model, folder))


def classifier() -> nn.Module:
    """Buffers, an in-place activation and random numbers."""
    return nn.Sequential(
        nn.Linear(6, 16),
        nn.BatchNorm1d(16),
        nn.ReLU(inplace=True),
        nn.Dropout(0.2),
        nn.Linear(16, 3),
    )


def examples(n: int = BATCH_SIZE * N_BATCHES, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Inputs and their classes."""
    inputs = floats(n, 6)(seed)
    return inputs, inputs[:, :3].argmax(1)


def dataset(seed: int = 0) -> TensorDataset:
    return TensorDataset(*examples(seed=seed))


class TrainedTwice:
    """What every trainer must pass; its tests have fixtures ``scenario`` and ``pair``."""

    def test_training_is_equal_bit_for_bit(self, pair: Pair) -> None:
        assert pair.different == []

    def test_no_probe_fails(self, pair: Pair) -> None:
        assert pair.status.errors == ()
        assert pair.status.problem == ""
        assert pair.status.dropped_rows == 0
        assert [event for event in pair.events if event.kind == "error"] == []

    def test_a_step_is_an_update_of_the_optimizer(self, pair: Pair) -> None:
        assert pair.steps
        recorded = pair.data.grad_norm.dropna("step", how="all")
        assert recorded.step.values.tolist() == list(range(len(pair.steps)))

    def test_calls_are_the_micro_batches(self, pair: Pair) -> None:
        for i, step in enumerate(pair.steps):
            wanted = pair.placed(dict(step.n_calls))
            assert recorded_at(pair.data, "calls", i, wanted) == wanted

    def test_steps_have_as_many_calls_as_batches_were_accumulated(
        self, pair: Pair, scenario: Scenario
    ) -> None:
        calls = pair.data.calls.sel(module=pair.prefix or "(root)").dropna("step")
        assert calls.values.tolist() == scenario.calls

    def test_weights_gradients_and_updates_are_those_of_the_optimizer(self, pair: Pair) -> None:
        for i, step in enumerate(pair.steps):
            for quantity, values in step.parameters.items():
                wanted = pair.placed(values)
                assert wanted
                assert recorded_at(pair.data, quantity, i, wanted) == near(wanted)

    def test_modules_show_the_training_forwards_and_nothing_of_validation(self, pair: Pair) -> None:
        for i, step in enumerate(pair.steps):
            for quantity, values in step.modules.items():
                wanted = pair.placed(values)
                assert wanted
                assert recorded_at(pair.data, quantity, i, wanted) == near(wanted)

    def test_validation_is_recorded_by_itself_where_it_is_asked_for(self, pair: Pair) -> None:
        sizes = pair.data.eval_output_norm.sel(module=pair.prefix or "(root)").dropna("step")
        found = dict(zip(sizes.step.values.tolist(), sizes.values.tolist(), strict=True))
        assert len(found) >= N_EPOCHS
        assert found == near(pair.validations)
