"""Each way of building, on networks whose graph is known by hand, and what stays as it was."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import spectral_norm, weight_norm

from notebook_probe.graph import Graph, ModuleEntry, building
from notebook_probe.graph.building import build
from tests.graph.untouched import assert_unchanged, state_of
from tests.models import CASES, ConvNet, Residual, Shared, made, mlp


def chain(graph: Graph) -> list[tuple[str, str, tuple[int, ...] | None]]:
    return [(node.op, node.module, node.shape) for node in graph.operators]


def links(graph: Graph) -> set[tuple[str, str]]:
    return {(graph.nodes[start].name, graph.nodes[end].name) for start, end in graph.edges}


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Lets only some of the ways be gone."""

    def ways(*names: str) -> None:
        kept = {name: way for name, way in building.WAYS.items() if name in names}
        monkeypatch.setattr(building, "WAYS", kept)

    return ways


@pytest.mark.slow
def test_a_small_network_is_exported_as_it_is_written() -> None:
    graph = build(made(mlp), (torch.zeros(5, 4),))
    assert (graph.how, graph.model, graph.why) == ("exported", "Sequential", "")
    assert chain(graph) == [("linear", "0", (5, 8)), ("relu", "1", (5, 8)), ("linear", "2", (5, 2))]
    assert links(graph) == {
        ("input", "linear"),
        ("0_weight", "linear"),
        ("0_bias", "linear"),
        ("linear", "relu"),
        ("relu", "linear_1"),
        ("2_weight", "linear_1"),
        ("2_bias", "linear_1"),
        ("linear_1", "output"),
    }
    assert graph.modules == (
        ModuleEntry("", "Sequential", 58, 1),
        ModuleEntry("0", "Linear", 40, 1),
        ModuleEntry("1", "ReLU", 0, 1),
        ModuleEntry("2", "Linear", 18, 1),
    )
    assert str(graph) == "Sequential: exported, 3 operators of 3 modules"
    assert {node.dtype for node in graph.nodes} == {"float32"}


def test_a_call_tells_the_same(only: Callable[..., None]) -> None:
    model, batch = made(Residual), torch.zeros(3, 4)
    exported = build(model, (batch,))
    only("called")
    called = build(model, (batch,))
    assert called.how == "called"
    assert chain(called) == chain(exported)
    assert called.modules == exported.modules

    def between(graph: Graph) -> set[tuple[str, str]]:
        kinds = {node.name: node.kind for node in graph.nodes}
        return {
            (start, end) for start, end in links(graph) if kinds[start] == kinds[end] == "operator"
        }

    assert between(called) == between(exported)


def test_a_residual_sum_has_both_its_terms() -> None:
    graph = build(made(Residual), (torch.zeros(3, 4),))
    assert chain(graph) == [
        ("linear", "first", (3, 4)),
        ("tanh", "", (3, 4)),
        ("add", "", (3, 4)),
        ("linear", "last", (3, 4)),
        ("tanh", "", (3, 4)),
        ("add", "", (3, 4)),
    ]
    assert {("x", "add"), ("tanh", "add"), ("add", "add_1"), ("tanh_1", "add_1")} <= links(graph)


def test_a_module_that_is_called_twice_says_so() -> None:
    graph = build(made(Shared), (torch.zeros(2, 4),))
    assert chain(graph) == [
        ("linear", "twice", (2, 4)),
        ("relu", "relu", (2, 4)),
        ("linear", "twice", (2, 4)),
    ]
    assert {one.path: one.calls for one in graph.modules} == {"": 1, "twice": 2, "relu": 1}


def test_a_module_at_two_paths_is_called_by_the_first_of_them() -> None:
    layer = nn.Linear(4, 4)
    graph = build(nn.Sequential(layer, nn.ReLU(), layer), (torch.zeros(2, 4),))
    assert [node.module for node in graph.operators] == ["0", "1", "0"]
    assert [(one.path, one.calls) for one in graph.modules] == [("", 1), ("0", 2), ("1", 1)]


def test_what_is_not_used_is_not_there() -> None:
    graph = build(OfData(), (torch.ones(2, 4),))
    assert [one.path for one in graph.modules] == ["", "one"]
    assert not [node for node in graph.nodes if node.module == "other"]


def test_shapes_are_those_of_a_real_forward() -> None:
    model, batch = made(ConvNet), torch.randn(4, 1, 6, 6)
    graph = build(model, (batch,))
    real: dict[str, list[tuple[int, ...]]] = {}
    for path, module in model.named_modules():
        if not [*module.children()]:
            module.register_forward_hook(
                lambda _, __, output, path=path: real.setdefault(path, []).append(
                    tuple(output.shape)
                )
            )
    model(batch)
    for path, shapes in real.items():
        given = [node.shape for node in graph.operators if node.module == path]
        assert given == shapes, path


@dataclass
class Inputs:
    image: Tensor
    scale: float


class OfObject(nn.Module):
    """Takes an object of the user's own, in which torch.export sees no tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(4, 2)

    def forward(self, inputs: Inputs) -> Tensor:
        return self.body(inputs.image) * inputs.scale


class OfData(nn.Module):
    """Goes one of two ways, as the data says."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.one(x) if x.sum() > 0 else self.other(x)


class OfContainers(nn.Module):
    """Takes a list and a dict of tensors, returns them in others."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(4, 2)

    def forward(self, parts: list[Tensor], *, named: dict[str, Tensor]) -> dict[str, Any]:
        return {"sum": self.body(parts[0] + named["other"]), "rest": [parts[1]]}


class WithoutInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self) -> Tensor:
        return self.weight.square().sum()


class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return torch.from_numpy(x.numpy() * 2)


class OfForeignCode(nn.Module):
    """Computes where torch does not look."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.foreign = nn.Linear(4, 2), Foreign()

    def forward(self, x: Tensor) -> Tensor:
        return self.foreign(self.body(x)).relu()


class Foreign(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return Own.apply(x)


class Raises(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 3), nn.Linear(3, 2)
        self.seen = 0

    def forward(self, x: Tensor) -> Tensor:
        self.seen += 1
        self.first(x)
        raise ValueError("not today\nand more")


class Remembers(nn.Module):
    """Writes into a buffer, an attribute, a list, and draws random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Linear(4, 4)
        self.mean: Tensor
        self.register_buffer("mean", torch.zeros(4))
        self.last, self.all = torch.zeros(2, 4), list[Tensor]()
        self.drop = nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        self.mean.mul_(0.9).add_(x.mean(0))
        self.last.copy_(x)
        self.last = self.drop(self.body(x)) + torch.rand(4)
        self.all.append(self.last)
        random.random()
        np.random.rand()  # noqa: NPY002
        return self.last


def frozen() -> nn.Module:
    model = made(mlp)
    model[0].requires_grad_(False)
    return model


def half() -> nn.Module:
    return made(mlp).bfloat16()


OTHERS: dict[str, tuple[Callable[[], nn.Module], tuple[Any, ...], dict[str, Any]]] = {
    **{name: (case.build, (case.batch(0),), {}) for name, case in CASES.items()},
    "object": (OfObject, (Inputs(torch.ones(2, 4), 2.0),), {}),
    "data": (OfData, (torch.ones(2, 4),), {}),
    "containers": (
        OfContainers,
        ([torch.ones(2, 4), torch.ones(3)],),
        {"named": {"other": torch.ones(2, 4)}},
    ),
    "nothing": (WithoutInputs, (), {}),
    "empty": (nn.Sequential, (torch.ones(2, 4),), {}),
    "foreign": (OfForeignCode, (torch.ones(2, 4),), {}),
    "raises": (Raises, (torch.ones(2, 4),), {}),
    "remembers": (Remembers, (torch.ones(2, 4),), {}),
    "frozen": (frozen, (torch.ones(2, 4),), {}),
    "half": (half, (torch.ones(2, 4, dtype=torch.bfloat16),), {}),
    "weight norm": (lambda: weight_norm(nn.Linear(4, 2)), (torch.ones(2, 4),), {}),
    "spectral norm": (lambda: spectral_norm(nn.Linear(4, 2)), (torch.ones(2, 4),), {}),
    "parametrized": (
        lambda: nn.utils.parametrizations.orthogonal(nn.Linear(4, 4)),
        (torch.ones(2, 4),),
        {},
    ),
    "lazy": (lambda: nn.Sequential(nn.LazyLinear(3)), (torch.ones(2, 4),), {}),
    "wrong input": (mlp, (torch.ones(2, 5),), {}),
    "no input": (mlp, (), {}),
    "scripted": (lambda: torch.jit.script(made(mlp)), (torch.ones(2, 4),), {}),
}
EXPECTED = {
    "object": "called",
    "data": "called",
    "foreign": "called",
    "raises": "tree",
    "lazy": "tree",
    "wrong input": "tree",
    "no input": "tree",
}


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning")
@pytest.mark.filterwarnings("ignore:.*jit.script:DeprecationWarning")
def test_nothing_of_any_model_changes(name: str, training: bool) -> None:
    make, args, kwargs = OTHERS[name]
    torch.manual_seed(0)
    model = make().train(training)
    if name not in ("lazy", "raises", "wrong input", "no input"):
        loss = model(*args, **kwargs)
        for parameter in model.parameters():
            parameter.grad = torch.ones_like(parameter)
        del loss
    before = state_of(model) if name != "lazy" else {}
    graph = build(model, args, kwargs)
    if before:
        assert_unchanged(model, before)
    assert graph.how == EXPECTED.get(name, graph.how), graph.why
    assert (graph.how == "exported") == (not graph.why)
    assert Graph.from_json(graph.to_json()) == graph


def test_a_reason_says_what_stood_against_it() -> None:
    graph = build(Raises(), (torch.ones(2, 4),))
    assert "not exported: ValueError: not today; not called: ValueError: not today" in graph.why
    assert [(node.module, node.shape) for node in graph.nodes] == [
        ("first", (2, 3)),
        ("last", None),
    ]
    assert str(graph) == "Raises: the tree of its modules, 2 of them"


def test_what_no_function_of_torch_gave_comes_from_its_module() -> None:
    graph = build(OfForeignCode(), (torch.ones(2, 4),))
    assert [(node.kind, node.op, node.module) for node in graph.operators] == [
        ("operator", "linear", "body"),
        ("module", "Foreign", "foreign"),
        ("operator", "relu", ""),
    ]
    assert {("linear", "Foreign"), ("Foreign", "relu")} <= links(graph)


def test_containers_are_looked_into(only: Callable[..., None]) -> None:
    make, args, kwargs = OTHERS["containers"]
    only("called")
    graph = build(make(), args, kwargs)
    assert [(n.name, n.shape) for n in graph.nodes if n.kind == "input"] == [
        ("parts", (2, 4)),
        ("parts_1", (3,)),
        ("named", (2, 4)),
    ]
    assert ("parts_1", "output_1") in links(graph)


def test_somebodys_hooks_hear_nothing() -> None:
    model, heard = made(mlp), list[str]()
    model.register_forward_hook(lambda *_: heard.append("forward"))
    model[0].register_forward_pre_hook(lambda *_: heard.append("pre"))
    model[1].register_full_backward_hook(lambda *_: heard.append("backward"))
    before = state_of(model)
    assert build(model, (torch.ones(2, 4),)).how == "exported"
    assert not heard
    assert_unchanged(model, before)


@pytest.mark.parametrize(
    "wrapper", [nn.DataParallel, lambda one: torch.compile(one, backend="eager")]
)
def test_wrappers_mean_the_model_inside(wrapper: Callable[[nn.Module], nn.Module]) -> None:
    model, batch = made(mlp), torch.ones(2, 4)
    plain = build(model, (batch,))
    assert build(wrapper(model), (batch,)) == plain


@pytest.mark.parametrize("has_run", [False, True])
def test_compiled_parts_are_seen_through(has_run: bool) -> None:
    model, batch = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), torch.ones(2, 4)
    model[0] = cast(nn.Module, torch.compile(model[0], backend="eager"))
    if has_run:
        model(batch)
    before = state_of(model)
    graph = build(model, (batch,))
    assert_unchanged(model, before)
    assert chain(graph) == [("linear", "0", (2, 4)), ("relu", "1", (2, 4))]


@pytest.mark.parametrize("how", ["exported", "called"])
@pytest.mark.parametrize("name", CASES)
def test_nodes_stand_in_topological_order_by_names_of_their_own(
    how: str, name: str, only: Callable[..., None]
) -> None:
    only(how)
    make, args, kwargs = OTHERS[name]
    graph = build(make(), args, kwargs)
    assert graph.how == how
    assert graph.edges
    assert all(start < end for start, end in graph.edges)
    assert len({node.name for node in graph.nodes}) == len(graph.nodes)


def test_a_failed_export_says_nothing_but_its_reason(capfd: pytest.CaptureFixture[str]) -> None:
    graph = build(OfData(), (torch.ones(2, 4),))
    assert graph.how == "called"
    assert "not exported: " in graph.why
    assert "data-dependent" in graph.why
    assert capfd.readouterr() == ("", "")
