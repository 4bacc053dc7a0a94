"""Values that a model gives of itself, under the module whose forward is running."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
import xarray as xr
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.checkpoint import checkpoint

import notebook_probe as nbp
from tests.models import floats, made, sgd
from tests.probes.oracles import Noted, column, notes_of, same_column, train_alike
from tests.run.conftest import Watch
from tests.run.oracle import Numbers

batch = floats(5, 4)
STEPS = range(3)
COMBINES: dict[str, Callable[[list[float]], float]] = {
    "mean": lambda values: float(np.mean(values)),
    "sum": lambda values: float(np.sum(values)),
    "max": max,
    "min": min,
    "last": lambda values: values[-1],
    "rss": lambda values: float(np.sqrt(np.square(values).sum())),
}


def loop(model: nn.Module, optimizer: Optimizer) -> None:
    for step in STEPS:
        optimizer.zero_grad()
        model(batch(step)).square().mean().backward()
        optimizer.step()


class Gate(nn.Module):
    """Says how far it is open."""

    def __init__(self, outer: Noted, combine: Any = "mean") -> None:
        super().__init__()
        self.linear, self._outer, self._combine = nn.Linear(4, 4), [outer], combine

    def forward(self, x: Tensor) -> Tensor:
        gate = self._outer[0].note("gate", self.linear(x).sigmoid())
        nbp.collect("openness", gate.mean(), combine=self._combine)
        return gate * x


class Gated(Noted):
    def __init__(self, n_calls: int = 1, combine: Any = "mean") -> None:
        super().__init__()
        self.gate, self.head, self._n_calls = Gate(self, combine), nn.Linear(4, 2), n_calls

    def forward(self, x: Tensor) -> Tensor:
        for _ in range(self._n_calls):
            x = self.gate(x)
        return self.head(x)


def openness(values: list[Numbers]) -> list[float]:
    return [float(gate.mean()) for gate in values]


def test_what_is_collected_lies_at_the_module_that_was_running(watch: Watch) -> None:
    twin, model = made(Gated), made(Gated)
    notes, run = notes_of(twin), watch(model, probes=None)
    train_alike(loop, twin, model)
    same_column(run, "gate", "openness", openness(notes.values("gate")))
    assert run.data.openness.attrs["long_name"] == "collected by the model"
    assert np.isnan(run.data.openness.drop_sel(module="gate")).all()


@pytest.mark.parametrize("combine", COMBINES)
def test_values_of_several_calls_and_micro_batches_combine_as_asked(
    combine: str, watch: Watch
) -> None:
    def accumulate(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            for micro in range(2):
                model(batch(10 * step + micro)).square().mean().backward()
            optimizer.step()

    build = partial(Gated, 3, combine)
    twin, model = made(build), made(build)
    notes, run = notes_of(twin), watch(model, probes=None)
    train_alike(accumulate, twin, model)
    values = openness(notes.values("gate"))
    wanted = [COMBINES[combine](values[6 * step : 6 * step + 6]) for step in STEPS]
    same_column(run, "gate", "openness", wanted)


def test_it_stands_beside_quantities_and_what_the_loop_logs(watch: Watch) -> None:
    model = made(Gated)
    run = watch(model, probes={"gate": ["output_norm"]})
    optimizer = sgd(model)
    for step in STEPS:
        model(batch(step)).square().mean().backward()
        optimizer.step()
        run.log(loss=step)
    run.close()
    data = run.data.load()
    assert {"openness", "output_norm", "loss"} <= set(data.data_vars)
    assert data.loss.sel(module="(root)").values.tolist() == [0, 1, 2]
    stored = xr.open_zarr(run.location, group="scalars/every_1", chunks=None).load()
    np.testing.assert_array_equal(
        stored.openness.sel(module="gate"), column(run, "gate", "openness")
    )
    again = nbp.open_run(run.location).series("gate", "openness")
    np.testing.assert_array_equal(again, column(run, "gate", "openness"))


def test_a_module_of_a_module_of_no_name_of_its_own_speaks_for_the_one_around_it(
    watch: Watch,
) -> None:
    """A module that the model does not own: the innermost that it does own is running."""

    class Hidden(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            nbp.collect("peak", x.amax())
            return x

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part, self.linear = Holder(), nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            nbp.collect("size", x.numel())
            return self.linear(self.part(x))

    class Holder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self._hidden = [Hidden()]  # in a list, so not registered

        def forward(self, x: Tensor) -> Tensor:
            return self._hidden[0](x)

    twin, model = made(Outer), made(Outer)
    run = watch(model, probes=None)
    train_alike(loop, twin, model)
    same_column(run, "part", "peak", [float(batch(step).double().max()) for step in STEPS])
    same_column(run, "(root)", "size", [20.0] * 3)


def test_a_part_that_is_called_directly_gives_its_values_too(watch: Watch) -> None:
    def directly(model: Any, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model.gate(batch(step)).square().mean().backward()
            optimizer.step()

    twin, model = made(Gated), made(Gated)
    notes, run = notes_of(twin), watch(model, probes=None)
    train_alike(directly, twin, model)
    assert run.data.step.values.tolist() == [0, 1, 2]
    same_column(run, "gate", "openness", openness(notes.values("gate")))


def test_a_step_in_which_nothing_was_collected_is_a_gap(watch: Watch) -> None:
    class Sometimes(nn.Module):
        talks = True

        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            if self.talks:
                nbp.collect("sum", x.sum())
            return self.linear(x)

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in range(4):
            model.talks = step % 2 == 1  # type: ignore[assignment]
            optimizer.zero_grad()
            model(batch(step)).square().mean().backward()
            optimizer.step()

    twin, model = made(Sometimes), made(Sometimes)
    run = watch(model, probes={"linear": ["output_norm"]})
    train_alike(loop, twin, model)
    sums = [float(batch(step).double().sum()) for step in range(4)]
    same_column(run, "(root)", "sum", [math.nan, sums[1], math.nan, sums[3]], rtol=1e-4)


# ---------------------------------------------------------------- where nothing is recorded


def evaluated(model: Any) -> None:
    model.eval()
    with torch.no_grad():
        model(100 * batch(9))
    model.train()


def no_grad(model: Any) -> None:
    with torch.no_grad():
        model(100 * batch(9))


def mapped(model: Any) -> None:
    torch.vmap(lambda x: model(x).sum())(100 * batch(9))


def differentiated(model: Any) -> None:
    torch.func.grad(lambda x: model(x).sum())(100 * batch(9))


def traced(model: Any) -> None:
    torch.jit.trace(model, 100 * batch(9), check_trace=False)


def compiled(model: Any) -> None:
    torch.compile(model, backend="eager")(100 * batch(9))
    torch._dynamo.reset()


SILENT = [evaluated, no_grad, mapped, differentiated, traced, compiled]


@pytest.mark.filterwarnings("ignore:.torch.jit.trace.* is deprecated")
@pytest.mark.parametrize("pass_through", SILENT, ids=lambda f: f.__name__)
def test_no_other_pass_than_a_training_forward_gives_values(
    pass_through: Callable[[Any], None], watch: Watch
) -> None:
    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            loss = model(batch(step)).square().mean()
            pass_through(model)
            loss.backward()
            optimizer.step()

    twin, model = made(Gated), made(Gated)
    run = watch(model, probes=None)
    train_alike(loop, twin, model)
    alone = made(Gated)
    notes, optimizer = notes_of(alone), sgd(alone)
    for step in STEPS:
        optimizer.zero_grad()
        alone(batch(step)).square().mean().backward()
        optimizer.step()
    same_column(run, "gate", "openness", openness(notes.values("gate")))


@pytest.mark.parametrize("reentrant", [True, False])
def test_a_recomputation_gives_no_second_value(reentrant: bool, watch: Watch) -> None:
    class Saved(Gated):
        def forward(self, x: Tensor) -> Tensor:
            kept: Tensor = checkpoint(self.gate, x, use_reentrant=reentrant)
            return self.head(kept)

    def loop(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            model(batch(step).requires_grad_()).square().mean().backward()
            optimizer.step()

    twin, model, alone = (
        made(partial(build, combine="sum")) for build in (Saved, Saved, Gated)
    )  # fmt: skip
    notes, run = notes_of(alone), watch(model, probes=None)
    train_alike(loop, twin, model)
    loop(alone, sgd(alone))
    same_column(run, "gate", "openness", openness(notes.values("gate")))


def test_it_does_nothing_where_nobody_watches(watch: Watch) -> None:
    twin, model = made(Gated), made(Gated)
    train_alike(loop, twin, model)  # nobody
    nbp.collect("outside", 1.0)
    other = made(Gated)
    run = watch(other, probes=None)
    train_alike(loop, twin, model)  # somebody watches another model
    nbp.collect("outside", 1.0)
    loop(other, sgd(other))
    assert list(run.data.data_vars) == ["openness"]
    run.close()
    loop(other, sgd(other))
    assert run.data.sizes["step"] == 3


# ---------------------------------------------------------------- several watchers


def test_two_models_that_call_each_other_keep_their_values_apart(watch: Watch) -> None:
    class Student(nn.Module):
        def __init__(self, teacher: nn.Module) -> None:
            super().__init__()
            self.linear, self._teacher = nn.Linear(4, 2), [teacher]

        def forward(self, x: Tensor) -> Tensor:
            target = self._teacher[0](x)
            nbp.collect("target", target.mean())
            return self.linear(x) - target

    teacher = made(Gated)
    student = made(partial(Student, teacher))
    runs = watch(teacher, probes=None), watch(student, probes=None)
    optimizers = sgd(teacher), sgd(student)
    for step in STEPS:
        student(batch(step)).square().mean().backward()
        for optimizer in optimizers:
            optimizer.step()
    assert list(runs[0].data.data_vars) == ["openness"]
    assert list(runs[1].data.data_vars) == ["target"]
    assert len(runs[0].series("gate", "openness")) == len(runs[1].series("", "target")) == 3
