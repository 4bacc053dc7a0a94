"""torch.compile round a model: parameters are read as ever, and what cannot be seen is said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

import notebook_probe as nbp
from tests.models import floats, loss_of, made, sgd, train, train_step
from tests.probes.parameters.optimizer_oracles import PARAMETER, Diary
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch
from tests.run.oracle import norm, numbers

# What torch's own compiler imports is deprecated in torch.
pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated")

batch = floats(5, 4)

PLACES = ("first", "relu", "last")
FORWARD = ["output_norm", "input_norm", "output_grad_norm"]


class TwoLayers(nn.Module):
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "fullgraph", "watched_first"),
    [
        (wrapped, True, True),
        (wrapped, False, False),
        (in_place, True, False),
        (in_place, False, True),
    ],
)  # any two together
def test_watching_adds_no_graph_and_changes_no_bit_of_a_compiled_model(
    way: Callable[..., nn.Module], fullgraph: bool, watched_first: bool, watch: Watch
) -> None:
    alone, model = made(TwoLayers), made(TwoLayers)
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


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_model_watched_after_it_was_compiled_and_trained_goes_on_in_its_graphs(
    backend: str, watch: Watch
) -> None:
    alone, model = made(TwoLayers), made(TwoLayers)
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


@pytest.mark.parametrize("watched_first", [True, False])
@pytest.mark.parametrize("way", [wrapped, in_place])
def test_a_probe_that_cannot_see_into_a_compiled_region_says_so(
    way: Callable[..., nn.Module], watched_first: bool, watch: Watch
) -> None:
    model = made(TwoLayers)
    if watched_first:
        run = watch(model, probes=everywhere(model), on_compiled="skip")
        called = way(model, "eager", False)
    else:
        called = way(model, "eager", False)
        run = watch(called, probes=everywhere(model), on_compiled="skip")
    train(called, sgd(model), batch, range(3))
    run.controls.settle()
    told = {(probe.module, probe.quantity): probe for probe in run.probes()}
    for place in PLACES:
        for quantity in FORWARD:
            assert told[place, quantity].n_values == 0
            assert "compile" in told[place, quantity].note
    assert told["first.weight", "weight_norm"].note == ""
    assert told["first.weight", "weight_norm"].n_values == 3


def compiled_training(
    model: nn.Module, optimizer: Optimizer, backend: str
) -> Callable[[Tensor], None]:
    """Forward, backward and step in one compiled function; the model itself is not wrapped."""

    @torch.compile(backend=backend)
    def train_step(given: Tensor) -> None:
        (model(given) - 0.3).square().mean().backward()
        optimizer.step()

    return train_step


@pytest.mark.slow
def test_a_compiled_function_round_the_model_is_told_too(watch: Watch) -> None:
    model = made(TwoLayers)
    run = watch(model, probes={"first": ["output_norm", "weight_norm"]}, on_compiled="skip")
    optimizer = sgd(model)
    step_of = compiled_training(model, optimizer, "eager")
    for step in range(4):
        optimizer.zero_grad()
        step_of(batch(step))
    run.controls.settle()
    notes = {probe.quantity: probe.note for probe in run.probes()}
    assert "compile" in notes["output_norm"]
    assert notes["weight_norm"] == ""


def test_a_wrappers_prefix_is_in_no_name(watch: Watch) -> None:
    model = made(TwoLayers)
    run = watch(torch.compile(nn.DataParallel(model), backend="eager"))
    names = [row.name for row in run.modules]
    assert names == ["(root)", *PLACES]
    assert not [name for name in run.data.module.values if "_orig_mod" in name or "." in name]


# ---------------------------------------------------------------- probed steps run eagerly


def stance() -> str:
    return torch._dynamo.eval_frame._stance.stance


def eager_oracle(alone: nn.Module, steps: Sequence[int]) -> dict[tuple[str, str], list[float]]:
    """What an eager twin's layers take and give at these steps, by plain autograd."""
    found: dict[tuple[str, str], list[float]] = {}
    optimizer = SGD(alone.parameters(), lr=0.1, momentum=0.9)
    first, relu, last = (alone.get_submodule(path) for path in PLACES)
    for step in range(7):
        optimizer.zero_grad()
        x = [batch(step)]
        for layer in (first, relu, last):
            x.append(layer(x[-1]))
            x[-1].retain_grad()
        loss_of(x[-1]).backward()
        if step in steps:
            for i, place in enumerate(PLACES):
                gradient = x[i + 1].grad
                assert gradient is not None
                row = zip(("input_norm", "output_norm", "output_grad_norm"),
                          (x[i], x[i + 1], gradient), strict=True)  # fmt: skip
                for quantity, tensor in row:
                    found.setdefault((place, quantity), []).append(norm(numbers([tensor])))
        optimizer.step()
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "way", "fullgraph"),
    [
        ("eager", wrapped, True),
        ("eager", in_place, False),
        ("aot_eager", wrapped, False),
        ("aot_eager", in_place, True),
        ("counting", wrapped, True),
        ("counting", in_place, False),
    ],
)
def test_only_the_steps_that_are_due_leave_the_compiled_graphs(
    backend: str, way: Callable[..., nn.Module], fullgraph: bool, watch: Watch
) -> None:
    """Forward and backward quantities of a compiled model, on request, with no graph more."""
    alone, model, unwatched = made(TwoLayers), made(TwoLayers), made(TwoLayers)
    chosen: Any = Counting() if backend == "counting" else backend
    called = way(model, chosen, fullgraph)
    probes = {place: [[q, "every(3)"] for q in FORWARD] for place in PLACES}
    run = watch(called, probes=probes, on_compiled="eager")
    optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9)
    for step in range(7):
        train_step(called, optimizer, batch(step))
    wanted = eager_oracle(alone, (0, 3, 6))
    for (place, quantity), values in wanted.items():
        series = run.series(place, quantity)
        assert series.step.values.tolist() == [0, 3, 6]
        np.testing.assert_allclose(series, values, rtol=1e-5, err_msg=f"{quantity} at {place}")
    if isinstance(chosen, Counting):
        torch._dynamo.reset()
        plain = Counting()
        train(way(unwatched, plain, fullgraph), sgd(unwatched), batch, range(7))
        assert chosen.n_graphs == plain.n_graphs
    run.close()
    assert stance() == "default"


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_due_steps_of_a_compiled_training_function_are_seen_too(backend: str, watch: Watch) -> None:
    alone, model = made(TwoLayers), made(TwoLayers)
    probes = {place: [[q, "every(3)"] for q in FORWARD] for place in PLACES}
    run = watch(model, probes=probes, on_compiled="eager")
    optimizer = SGD(model.parameters(), lr=0.1, momentum=0.9)
    step_of = compiled_training(model, optimizer, backend)
    for step in range(7):
        optimizer.zero_grad()
        step_of(batch(step))
    for (place, quantity), values in eager_oracle(alone, (0, 3, 6)).items():
        series = run.series(place, quantity)
        assert series.step.values.tolist() == [0, 3, 6]
        np.testing.assert_allclose(series, values, rtol=1e-5, err_msg=f"{quantity} at {place}")
    run.close()
    assert stance() == "default"


def test_the_eager_steps_end_with_the_probe_that_asked_for_them(watch: Watch) -> None:
    model, compiler = made(TwoLayers), Counting()
    called = wrapped(model, compiler, True)
    run = watch(called, probes=None, on_compiled="eager")
    optimizer = sgd(model)
    handle = run.attach("first", "output_norm")
    train(called, optimizer, batch, range(3))
    assert compiler.n_graphs == 0, "every step was due"
    handle.remove()
    train(called, optimizer, batch, range(3))
    run.controls.settle()
    assert compiler.n_graphs == 1
    assert stance() == "default"
    assert run.series("first", "output_norm").step.values.tolist()[:3] == [0, 1, 2]


def test_a_stance_that_the_user_set_is_left_as_it_is(watch: Watch) -> None:
    """Nothing is compiled then, so every probe sees all there is to see."""
    model = made(TwoLayers)
    called = wrapped(model, "eager", True)
    with torch.compiler.set_stance("force_eager"):
        run = watch(called, probes={"first": [["output_norm", "every(2)"]]}, on_compiled="eager")
        optimizer = sgd(model)
        for step in range(4):
            train_step(called, optimizer, batch(step))
            assert stance() == "force_eager"
        assert run.series("first", "output_norm").step.values.tolist() == [0, 2]
        run.close()
        assert stance() == "force_eager"
    assert stance() == "default"


@pytest.mark.parametrize("moment", ["forward", "step"])
def test_an_error_in_a_due_step_leaves_the_stance_as_it_was(moment: str, watch: Watch) -> None:
    class Fragile(SGD):
        fails = False

        def step(self, closure: Any = None) -> Any:
            if self.fails:
                raise FloatingPointError("no number")
            return super().step(closure)

    model = made(TwoLayers)
    called = wrapped(model, "eager", True)
    run = watch(called, probes={"first": ["output_norm"]}, on_compiled="eager")
    optimizer = Fragile(model.parameters(), lr=0.1)
    train_step(called, optimizer, batch(0))
    optimizer.fails = moment == "step"
    given = torch.ones(5, 3) if moment == "forward" else batch(1)
    with pytest.raises((RuntimeError, FloatingPointError)):
        train_step(called, optimizer, given)
    run.close()
    assert stance() == "default"


def test_two_optimizers_of_one_step_do_not_leave_the_eager_stance_between_them(
    watch: Watch,
) -> None:
    model = made(TwoLayers)
    called = wrapped(model, "eager", True)
    run = watch(called, probes={"first": [["output_norm", "every(2, 1)"]]}, on_compiled="eager")
    halves: list[Optimizer] = [sgd(model.get_submodule("first")), sgd(model.get_submodule("last"))]
    for step in range(4):
        loss_of(called(batch(step))).backward()
        for optimizer in halves:
            optimizer.step()
            optimizer.zero_grad()
    assert run.series("first", "output_norm").step.values.tolist() == [1, 3]
    run.close()
    assert stance() == "default"


def calls(run: nbp.Run, place: str) -> list[float]:
    run.controls.settle()
    return run.data.calls.sel(module=place).values.tolist()


def all_missing(values: list[float]) -> bool:
    return len(values) > 0 and all(map(np.isnan, values))


@pytest.mark.parametrize("compiled", [wrapped, in_place])
def test_how_often_the_inside_of_a_compiled_model_was_called_is_not_known(
    compiled: Callable[..., nn.Module], watch: Watch
) -> None:
    model = made(TwoLayers)
    run = watch(model, probes={"first": ["output_norm", "weight_norm"]}, on_compiled="skip")
    called = compiled(model, Counting(), True)
    optimizer = sgd(model)
    for step in range(3):
        train_step(called, optimizer, batch(step))
    assert all_missing(calls(run, "first"))
    assert run.data.weight_norm.sel(module="first").notnull().all()


class Sometimes(nn.Module):
    """A part that is compiled, and one that is not called."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.expert = TwoLayers(), nn.Linear(2, 2)
        self.uses_expert = True

    def forward(self, x: Tensor) -> Tensor:
        x = self.body(x)
        return self.expert(x) if self.uses_expert else x


def test_a_part_that_is_not_called_has_none_and_one_that_is_compiled_alone_has_a_gap(
    watch: Watch,
) -> None:
    model = made(Sometimes)
    run = watch(model, probes={("body.first", "expert"): ["output_norm"]}, on_compiled="skip")
    optimizer = sgd(model)
    train_step(model, optimizer, batch(0))
    model.body.compile(backend=Counting())
    model.uses_expert = False
    for step in range(1, 3):
        train_step(model, optimizer, batch(step))
    assert calls(run, "expert") == [1, 0, 0]
    of_body = calls(run, "body.first")
    assert of_body[0] == 1
    assert all_missing(of_body[1:])


class Sliced(nn.Module):
    """Slices its list of modules in each forward, by which torch registers them once more."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 2)])

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers[:2]:
            x = layer(x)
        return x


@pytest.mark.slow
@pytest.mark.parametrize("on_compiled", ["inside", "skip"])
def test_a_forward_that_registers_modules_is_compiled_once(on_compiled: str, watch: Watch) -> None:
    counts = []
    for is_watched in (False, True):
        torch._dynamo.reset()
        model, compiler = made(Sliced), Counting()
        if is_watched:
            watch(model, probes={"layers.0": ["output_norm"]}, on_compiled=on_compiled)
        train(wrapped(model, compiler, True), sgd(model), batch, range(4))
        counts.append(compiler.n_graphs)
    assert counts == [1, 1]
