"""What a model tells of itself, to several runs, to compilers, and over the life of a record."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.errors import QuantityError, ReplacedWarning
from tests.models import floats, loss_of, made, sgd, train, train_step
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch

batch = floats(5, 4)


class Gate(nn.Module):
    """Says how far it is open, and keeps what it said."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.kept: list[float] = []

    def forward(self, x: Tensor) -> Tensor:
        opening = torch.sigmoid(self.linear(x))
        nbp.collect("openness", opening.mean())
        self.kept.append(float(opening.detach().double().numpy().mean()))
        return opening * x


class Gated(nn.Module):
    """Two gates, one of them twice, and a value of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.again = Gate(), Gate()
        self.head = nn.Linear(4, 2)
        self.kept: list[float] = []

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.again(self.again(self.first(x)))
        nbp.collect("hidden_size", hidden.norm(), combine="max")
        self.kept.append(float(np.linalg.norm(hidden.detach().double().numpy())))
        return self.head(hidden)

    def encode(self, x: Tensor) -> Tensor:
        return self.first(x)


def column(run: nbp.Run, place: str, name: str) -> list[float]:
    return run.series(place, name).values.tolist()


def gate(model: Gated, place: str) -> Gate:
    found = model.get_submodule(place)
    assert isinstance(found, Gate)
    return found


def test_outside_of_a_watched_model_it_does_nothing(watch: Watch) -> None:
    """In a loss, in an unwatched model, after the run is closed: not even a word."""
    model, other = made(Gated), made(Gated)
    loss_of(other(batch(0))).backward()
    run = watch(model, probes=None)
    optimizer = sgd(model)
    loss = loss_of(model(batch(0)))
    nbp.collect("of_nobody", loss)
    other(batch(0))
    loss.backward()
    optimizer.step()
    run.controls.settle()
    assert set(run.data.data_vars) == {"openness", "hidden_size"}
    np.testing.assert_allclose(
        column(run, "first", "openness"), gate(model, "first").kept, rtol=1e-6
    )
    run.close()
    train_step(model, optimizer, batch(1))
    assert run.data.sizes["step"] == 1


# ---------------------------------------------------------------- several models, several runs


def test_watched_models_that_call_each_other_tell_each_its_own(watch: Watch) -> None:
    """One is a part of the other: what it tells stands in both records."""
    whole = made(Gated)
    part = gate(whole, "first")
    runs = watch(whole, probes=None), watch(part, probes=None)
    train(whole, sgd(whole), batch, range(3))
    for run, place in zip(runs, ("first", ""), strict=True):
        np.testing.assert_allclose(column(run, place, "openness"), part.kept, rtol=1e-6)


def test_two_runs_of_one_model_are_told_the_same(watch: Watch) -> None:
    model = made(Gated)
    runs = watch(model, probes=None), watch(model, probes=None)
    optimizer = sgd(model)
    train(model, optimizer, batch, range(2))
    runs[1].close()
    train(model, optimizer, batch, range(2, 4))
    told = gate(model, "first").kept
    np.testing.assert_allclose(column(runs[0], "first", "openness"), told, rtol=1e-6)
    np.testing.assert_allclose(column(runs[1], "first", "openness"), told[:2], rtol=1e-6)


def test_models_side_by_side_tell_nothing_of_each_other(watch: Watch) -> None:
    models = made(Gated), made(Gated, seed=2)
    runs = [watch(model, probes=None) for model in models]
    for step in range(3):
        for model in models:
            train_step(model, sgd(model), batch(step))
    for run, model in zip(runs, models, strict=True):
        told = gate(model, "first").kept
        np.testing.assert_allclose(column(run, "first", "openness"), told, rtol=1e-6)


# ---------------------------------------------------------------- tracers and compilers


class Silent(nn.Module):
    """As Gated, but with nothing in it that a tracer minds."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.linear(x)
        nbp.collect("size", y.norm())
        return y


@pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated")
def test_in_a_compiled_model_it_is_compiled_away(watch: Watch) -> None:
    """With no break in the graph, and the same bits."""
    graphs: list[object] = []

    def backend(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
        graphs.append(graph)
        return graph.forward

    alone, model = made(Silent), made(Silent)
    run = watch(model, probes={"linear": ["weight_norm"]})
    compiled: Any = torch.compile(model, backend=backend, fullgraph=True)
    for called, owner in ((alone, alone), (compiled, model)):
        train(called, sgd(owner), batch, range(3))
    assert differing(everything(alone), everything(model)) == []
    assert len(graphs) == 1
    assert run.data.step.values.tolist() == [0, 1, 2]
    assert "size" not in run.data


# ---------------------------------------------------------------- what is refused


class Telling(nn.Module):
    """Collects what it is given."""

    def __init__(self, name: str = "told", **options: Any) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 2)
        self.name, self.options = name, options
        self.value: Any = 1.0

    def forward(self, x: Tensor) -> Tensor:
        nbp.collect(self.name, self.value, **self.options)
        return self.linear(x)


@pytest.mark.parametrize(
    ("value", "said"), [(torch.ones(2), "tensor of shape"), ("0.5", "str '0.5'")], ids=str
)
def test_what_is_no_number_is_refused_also_while_nobody_watches(value: Any, said: str) -> None:
    """A model must not break when somebody begins to watch it."""
    model = made(Telling)
    model.value = value
    with pytest.raises(QuantityError, match=r"collect\('told', ...\)") as refused:
        model(batch(0))
    assert said in str(refused.value)
    assert "one real number" in str(refused.value)


# ---------------------------------------------------------------- the record


def test_a_run_that_goes_on_with_its_record_takes_the_same_names(watch: Watch) -> None:
    model = made(Gated)
    first = watch(model, probes=None)
    train(model, sgd(model), batch, range(2))
    first.close()
    second = watch(model, probes=None, store=first.location)
    train(model, sgd(model), batch, range(2, 4))
    told = gate(model, "first").kept
    np.testing.assert_allclose(column(second, "first", "openness"), told, rtol=1e-6)
    assert second.data.step.values.tolist() == [0, 1, 2, 3]


def test_a_logged_number_of_the_same_name_as_what_the_root_tells_has_a_series_of_its_own(
    watch: Watch,
) -> None:
    model = made(Telling)
    run = watch(model, probes=None)
    optimizer = sgd(model)
    for step in range(2):
        train_step(model, optimizer, batch(step))
    with pytest.warns(ReplacedWarning, match="'logged_told', as in run.series"):
        run.log(told=5.0)
    assert column(run, "", "told") == [1.0, 1.0]
    assert run.series("", "logged_told").values.tolist() == [5.0]


def test_what_is_told_keeps_no_graph_alive(watch: Watch) -> None:
    graphs: list[weakref.ref[Any]] = []

    class Heavy(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            y = self.linear(x)
            total = y.sum()
            graphs.append(weakref.ref(total))
            nbp.collect("total", total)
            return y

    model = made(Heavy)
    run = watch(model, probes=None)
    gc.collect()
    gc.disable()
    try:
        model(batch(0))
        assert graphs[0]() is None
    finally:
        gc.enable()
    train_step(model, sgd(model), batch(0))
    assert len(run.series("", "total")) == 1
