"""Modules that overwrite what they are given, where that is a view of something else."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor, nn

from tests.models import floats, made, sgd
from tests.probes.oracles import (
    Noted,
    grad_input_size,
    notes_of,
    plain_loop,
    same_column,
    train_alike,
)
from tests.run.conftest import Watch
from tests.run.oracle import norm

batch = floats(5, 4)
STEPS = range(3)
loop = plain_loop(batch, STEPS)
COLUMNS = [grad_input_size, "output_grad_norm"]

VIEWS: dict[str, Callable[[Tensor], Tensor]] = {
    "flatten": lambda h: h.flatten(1),
    "transpose": lambda h: h.transpose(0, 2),
    "slice": lambda h: h[1:4],
    "second half": lambda h: h[..., 2:],
    "every other": lambda h: h[:, :, ::2],
    "view of a view": lambda h: h.flatten(1)[:, 1:].t(),
}


class Twice(nn.Module):
    """Reads what it is given, and overwrites it twice."""

    def __init__(self, inplace: bool) -> None:
        super().__init__()
        self._inplace = inplace

    def forward(self, x: Tensor) -> Tensor:
        before = 3 * x
        return (x.mul_(2).sub_(1) if self._inplace else x * 2 - 1) + before


class ThenReturned(nn.Module):
    """Overwrites what it is given, and returns it in another shape."""

    def __init__(self, inplace: bool) -> None:
        super().__init__()
        self._inplace = inplace

    def forward(self, x: Tensor) -> Tensor:
        return (x.mul_(2) if self._inplace else x * 2).unsqueeze(0)


PARTS: dict[str, Callable[[bool], nn.Module]] = {
    "relu": nn.ReLU,
    "dropout": lambda inplace: nn.Dropout(0.0, inplace),
    "twice": Twice,
    "returned": ThenReturned,
}


class Changed(Noted):
    """A part that overwrites a view, and a user of the same memory behind it."""

    def __init__(self, view: str, part: str, inplace: bool, goes_on: bool) -> None:
        super().__init__()
        self.linear, self.part = nn.Linear(4, 12), PARTS[part](inplace)
        self._view, self._inplace, self._goes_on = VIEWS[view], inplace, goes_on

    def forward(self, x: Tensor) -> Tensor:
        hidden = (self.linear(x) * 1).reshape(5, 3, 4)
        given = self._view(hidden)
        output = self.note("output", self.part(self.note("input", given)))
        if self._goes_on:
            output = output.mul_(3) if self._inplace else 3 * output
        return output + 1


@pytest.mark.parametrize(
    ("part", "goes_on"),
    [("relu", False), ("dropout", False), ("twice", False), ("twice", True), ("returned", True)],
)
@pytest.mark.parametrize("view", VIEWS)
def test_a_module_that_overwrites_a_view_has_the_gradient_of_what_it_was_given(
    view: str, part: str, goes_on: bool, watch: Watch
) -> None:
    """Also if something behind it overwrites the memory again."""
    build = partial(Changed, view, part)
    oracle, plain, model = (made(partial(build, how, goes_on)) for how in (False, True, True))
    notes, run = notes_of(oracle), watch(model, probes={"part": COLUMNS})
    train_alike(loop, plain, model)
    loop(oracle, sgd(oracle))
    given, output = notes.gradients_of("input"), notes.gradients_of("output")
    same_column(run, "part", "grad_input_size", [norm(g) for g in given], rtol=1e-4)
    same_column(run, "part", "output_grad_norm", [norm(g) for g in output], rtol=1e-4)
    assert not run.status().errors


def test_what_flatten_gives_an_activation_is_measured_as_on_paper(watch: Watch) -> None:
    """Σ relu(v)·c sends c where v is positive, and nothing elsewhere."""
    model = nn.Sequential(nn.Linear(1, 4, bias=False), nn.Flatten(), nn.ReLU(inplace=True))
    with torch.no_grad():
        model.get_parameter("0.weight").copy_(torch.tensor([[1.0], [-1.0], [2.0], [-2.0]]))
    run, optimizer = watch(model, probes={"2": COLUMNS}), sgd(model)
    (model(torch.ones(1, 1, 1)) * torch.tensor([3.0, 5.0, 4.0, 7.0])).sum().backward()
    optimizer.step()
    assert float(run.series("2", "grad_input_size")[0]) == pytest.approx(5.0)
    assert float(run.series("2", "output_grad_norm")[0]) == pytest.approx(math.sqrt(99))


class Halves(nn.Module):
    """Is given two parts of one tensor, and overwrites the one."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.part = Halves.Part()

    class Part(nn.Module):
        def forward(self, one: Tensor, other: Tensor) -> Tensor:
            return one.relu_() + other

    def forward(self, x: Tensor) -> Tensor:
        one, other = self.linear(x)[:, :2], None
        base = one._base
        assert base is not None
        other = base[:, 2:]
        return self.part(one, other) + other


def test_of_several_views_of_one_tensor_of_which_one_changes_there_is_a_gap(watch: Watch) -> None:
    twin, model = made(Halves), made(Halves)
    run = watch(model, probes={"part": COLUMNS})
    train_alike(loop, twin, model)
    assert "grad_input_size" not in run.data or run.data.grad_input_size.isnull().all()
    assert run.data.output_grad_norm.notnull().all()
    told = {probe.quantity: probe.note for probe in run.status().probes}
    assert "share their memory" in told["grad_input_size"]
    assert not run.status().errors
