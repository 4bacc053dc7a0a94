"""Models of the libraries people use, with every module and every parameter measured."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import xarray as xr
from torch import nn
from torch.optim import AdamW, Optimizer

import notebook_probe as nbp
from notebook_probe.run.health.status import Status
from tests.libraries import other_models, own_models, transformers_models
from tests.libraries.case import Case
from tests.libraries.measured import OF_ONE_TENSOR, attach_everything
from tests.libraries.observed import Step
from tests.libraries.records import named, near, recorded, recorded_at
from tests.libraries.witness import Witness
from tests.models import made
from tests.probes.parity import differing, everything

pytestmark = pytest.mark.libraries

N_STEPS = 3

CASES = {**transformers_models.CASES, **other_models.CASES, **own_models.CASES}


@dataclass(frozen=True)
class Training:
    """A model trained with everything measured, and what twins without it say."""

    case: Case
    different: list[str]
    """What is not the same, bit by bit, after training without a run."""
    status: Status
    data: xr.Dataset
    places: dict[str, set[str]]
    """Quantity -> where it is attached; a container without a forward has no output."""
    steps: list[Step]


@pytest.fixture(scope="module", params=CASES)
def training(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Training:
    case = CASES[request.param]
    twin, optimizer = begun(case.build)
    left = trained(case, twin, optimizer)

    watched, optimizer = begun(case.build)
    with nbp.watch(watched, store=tmp_path_factory.mktemp("run") / "1.zarr") as run:
        attach_everything(run, watched)
        different = differing(left, trained(case, watched, optimizer))
        status, data = run.status(), run.data.load()
        places = defaultdict(set)
        for probe in run.probes():
            places[probe.quantity].add(probe.module)

    plain, optimizer = begun(case.plain or case.build)
    with Witness(plain, retained=True) as witness:
        trained(case, plain, optimizer, retain_graph=True)
    return Training(case, different, status, data, places, witness.steps)


def begun(build: Callable[[], nn.Module]) -> tuple[nn.Module, Optimizer]:
    """The same weights and the same random numbers every time."""
    random.seed(1)
    model = made(build).train()
    return model, AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)


def trained(
    case: Case, model: nn.Module, optimizer: Optimizer, retain_graph: bool = False
) -> dict[str, bytes]:
    """Train by a user's loop; returns all that is left."""
    for step in range(N_STEPS):
        optimizer.zero_grad()
        case.loss(model(**case.batch(step))).backward(retain_graph=retain_graph)
        optimizer.step()
    return {
        **everything(model, [optimizer]),
        "random numbers of python": repr(random.getstate()).encode(),
    }


def test_training_is_equal_bit_for_bit(training: Training) -> None:
    assert training.different == []


def test_no_probe_fails(training: Training) -> None:
    """But where one activation serves layers of two widths: it has no one covariance."""
    failed = [p for p in training.status.errors if "no common" not in p.error]
    assert failed == []
    assert {p.module.split(".")[-1] for p in training.status.errors} <= {"nonlinearity"}
    assert training.status.problem == ""
    assert training.status.dropped_rows == 0


def test_every_step_is_recorded_once(training: Training) -> None:
    assert len(training.steps) == N_STEPS
    assert training.data.step.values.tolist() == list(range(N_STEPS))
    assert training.data.output_norm.sel(module="(root)").notnull().all()


def test_every_module_that_was_called_has_an_output(training: Training) -> None:
    places = training.places["output_norm"]
    for i, step in enumerate(training.steps):
        found = recorded(training.data, "output_norm", i).keys() & places
        assert found == named(step.modules["output_norm"]).keys()
        assert len(found) >= training.case.modules * len(places)


def test_every_parameter_that_was_trained_has_a_gradient(training: Training) -> None:
    for i, step in enumerate(training.steps):
        places = step.parameters["weight_norm"].keys()
        found = recorded(training.data, "grad_norm", i).keys() & places
        assert found == step.parameters["grad_norm"].keys()
        assert len(found) >= training.case.parameters * len(places)


def test_values_of_parameters_equal_the_twins_in_float64(training: Training) -> None:
    for i, step in enumerate(training.steps):
        raw = {"own_raw_grad": step.parameters["grad_norm"]}  # nobody clips, nobody accumulates
        for quantity, wanted in {**step.parameters, **raw}.items():
            assert recorded_at(training.data, quantity, i, wanted) == near(wanted)


def test_values_of_modules_equal_the_twins_in_float64(training: Training) -> None:
    for i, step in enumerate(training.steps):
        for quantity, values in step.modules.items():
            wanted = {p: v for p, v in named(values).items() if p in training.places[quantity]}
            assert wanted
            assert recorded_at(training.data, quantity, i, wanted) == near(wanted)


def test_calls_are_counted_once_also_where_they_are_computed_again(training: Training) -> None:
    for i, step in enumerate(training.steps):
        wanted = {
            p: n for p, n in named(step.n_calls).items() if p in training.places["output_norm"]
        }
        assert recorded_at(training.data, "calls", i, wanted) == wanted


@pytest.mark.parametrize(("own", "built_in"), OF_ONE_TENSOR.items())
def test_a_function_of_a_tensor_has_a_value_wherever_the_built_in_quantity_has(
    own: str, built_in: str, training: Training
) -> None:
    for i in range(N_STEPS):
        wanted = recorded(training.data, built_in, i).keys() & training.places[own]
        assert wanted
        assert recorded(training.data, own, i).keys() == wanted
