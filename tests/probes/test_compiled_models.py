"""torch.compile round a model: parameters are read as ever, and what cannot be seen is said."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD

import notebook_probe as nbp
from tests.models import floats, loss_of, made, sgd, train
from tests.probes.optimizer_oracles import PARAMETER, Diary
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch

# What torch's own compiler imports is deprecated in torch.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated")

batch = floats(5, 4)

PLACES = ("first", "relu", "last")
FORWARD = ["output_norm", "input_norm", "output_grad_norm"]


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


class Net(nn.Module):
    """A class of one's own: torch compiles no forward of its own containers in place."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.relu, self.last = nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.relu(self.first(x)))


class Counting:
    """A compiler that only counts the graphs it is given."""

    def __init__(self) -> None:
        self.n_graphs = 0

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
        self.n_graphs += 1
        return graph.forward


def wrapped(model: nn.Module, backend: Any, fullgraph: bool) -> nn.Module:
    return torch.compile(model, backend=backend, fullgraph=fullgraph)  # type: ignore[return-value]


def in_place(model: nn.Module, backend: Any, fullgraph: bool) -> nn.Module:
    model.compile(backend=backend, fullgraph=fullgraph)
    return model


def trained(model: nn.Module, called: nn.Module, diary: Diary | None = None) -> dict[str, bytes]:
    """Four steps of the compiled model, with an evaluation in between."""
    optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9)
    diary = diary or Diary(model, alone=False)
    for step in range(4):
        optimizer.zero_grad()
        loss_of(called(batch(step))).backward()
        with diary.update(optimizer):
            optimizer.step()
        if step == 1:
            with torch.no_grad():
                called(batch(9))
    return everything(model, [optimizer])


def everywhere(model: nn.Module) -> dict[str, list[str]]:
    parameters = {name: PARAMETER for name, _ in model.named_parameters()}
    return {**dict.fromkeys(PLACES, FORWARD), **parameters}


def check_parameters(run: nbp.Run, diary: Diary) -> None:
    assert run.data.step.values.tolist() == list(range(len(diary.entries)))
    for (name, quantity), values in diary.expected().items():
        np.testing.assert_allclose(
            run.series(name, quantity), list(values.values()), rtol=1e-5, err_msg=name
        )


@pytest.mark.parametrize("watched_first", [True, False])
@pytest.mark.parametrize("fullgraph", [True, False])
@pytest.mark.parametrize("way", [wrapped, in_place])
def test_watching_adds_no_graph_and_changes_no_bit_of_a_compiled_model(
    way: Callable[..., nn.Module], fullgraph: bool, watched_first: bool, watch: Watch
) -> None:
    alone, model = made(Net), made(Net)
    plain, compiler = Counting(), Counting()
    diary = Diary(alone, alone=False)
    left = trained(alone, way(alone, plain, fullgraph), diary)
    torch._dynamo.reset()
    if watched_first:
        run = watch(model, probes=everywhere(model))
        called = way(model, compiler, fullgraph)
    else:
        called = way(model, compiler, fullgraph)
        run = watch(model, probes=everywhere(model))
    assert differing(left, trained(model, called)) == []
    check_parameters(run, diary)
    assert compiler.n_graphs == plain.n_graphs
    assert not run.status().errors


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_model_watched_after_it_was_compiled_and_trained_goes_on_in_its_graphs(
    backend: str, watch: Watch
) -> None:
    alone, model = made(Net), made(Net)
    calls: list[dict[str, bytes]] = []
    diary = Diary(alone, alone=False)
    for each in (alone, model):
        torch._dynamo.reset()
        called = wrapped(each, backend, True)
        train(called, sgd(each), batch, range(2))
        if each is model:
            run = watch(called, probes=everywhere(model))
        calls.append(trained(each, called, diary if each is alone else None))
    assert differing(*calls) == []
    check_parameters(run, diary)


def test_a_wrappers_prefix_is_in_no_name(watch: Watch) -> None:
    model = made(Net)
    run = watch(torch.compile(nn.DataParallel(model), backend="eager"))
    names = [row.name for row in run.modules]
    assert names == ["(root)", *PLACES]
    assert not [name for name in run.data.module.values if "_orig_mod" in name or "." in name]


# ---------------------------------------------------------------- probed steps run eagerly
