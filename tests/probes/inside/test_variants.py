"""Graphs are compiled once for each set of readings, switched between steps, and left as found."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters
from torch.optim import SGD

import notebook_probe as nbp
from notebook_probe.probes.inside import traced
from tests.models import loss_of, made, sgd, train_step
from tests.probes.inside.compiled_models import (
    Small,
    Wrapped,
    batch,
    n_breaks,
    n_graphs,
    trained,
    whole,
)
from tests.probes.parity import differing, everything
from tests.run.conftest import Watch

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:.torch.jit.script_method. is deprecated"),
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf"),
]


class Training:
    """A compiled model and its optimizer, step by step."""

    def __init__(self, model: nn.Module) -> None:
        self.model, self.called, self.step = model, whole(model, "eager"), 0
        self.optimizer = sgd(model)

    def go(self, n: int) -> int:
        """Train some steps, and return the number of graphs that were compiled in them."""
        before = n_graphs()
        for _ in range(n):
            train_step(self.called, self.optimizer, batch(self.step))
            self.step += 1
        return n_graphs() - before


def steps_of(run: nbp.Run, place: str, quantity: str = "output_norm") -> list[int]:
    run.controls.settle()
    return run.series(place, quantity).step.values.tolist()


def test_two_variants_are_compiled_and_no_step_breaks_a_graph(watch: Watch) -> None:
    model = made(Small)
    run = watch(
        model, probes={"*": [["output_norm", "every(3)"], ["output_grad_norm", "every(3)"]]}
    )
    training = Training(model)
    assert [training.go(1) for _ in range(8)] == [1, 1, 0, 0, 0, 0, 0, 0]
    assert n_breaks() == 0
    assert steps_of(run, "first") == [0, 3, 6]


def test_a_quantity_attached_later_compiles_once_and_one_taken_back_not_at_all(
    watch: Watch,
) -> None:
    model = made(Small)
    run = watch(model, probes={"first": [["output_norm", "every(2)"]]})
    training = Training(model)
    assert training.go(4) == 2
    handle = run.attach("relu", "output_norm", "every(2)")
    assert training.go(4) == 1
    handle.remove()
    assert training.go(4) == 0
    again = run.attach("relu", "output_norm", "every(4)")
    assert training.go(4) == 0
    again.remove()
    assert steps_of(run, "first") == list(range(0, 16, 2))
    assert steps_of(run, "relu") == [4, 6, 12], "from the step on that is the next"


def test_a_probe_attached_to_a_model_that_had_none_is_measured(watch: Watch) -> None:
    model = made(Small)
    run = watch(model, probes=None)
    training = Training(model)
    assert training.go(2) == 1
    run.attach("first", "output_norm", "every(1)")
    training.go(4)
    assert steps_of(run, "first")[-2:] == [4, 5]


def test_a_twin_of_the_class_that_nobody_watches_shares_no_graph(watch: Watch) -> None:
    alone, model = made(Small), made(Small)
    other = Training(alone)
    other.go(2)
    run = watch(model, probes={"first": ["output_norm"]}, budget=None)
    training = Training(model)
    for _ in range(3):
        training.go(1)
        other.go(1)
    assert steps_of(run, "first") == [0, 1, 2]
    assert other.go(1) == training.go(1) == 0


def test_two_watched_models_of_one_class_have_their_own_values(watch: Watch) -> None:
    models = [made(Small, seed) for seed in (1, 2)]
    runs = [watch(model, probes={"first": ["output_norm"]}, budget=None) for model in models]
    trainings = [Training(model) for model in models]
    for _ in range(2):
        for training in trainings:
            training.go(1)
    for run, seed in zip(runs, (1, 2), strict=True):
        expected = made(Small, seed).first(batch(0)).double().norm().item()
        assert steps_of(run, "first") == [0, 1]
        assert run.series("first", "output_norm").values[0] == pytest.approx(expected, rel=1e-6)


def test_closing_leaves_the_model_as_it_was_found(watch: Watch) -> None:
    model = made(Small)
    training = Training(model)
    training.go(1)
    before = {name: dict(vars(module)) for name, module in model.named_modules()}
    run = watch(model, probes={"*": ["output_norm", "input_norm"]})
    training.go(2)
    run.close()
    for name, module in model.named_modules():
        assert not module._forward_hooks
        assert not module._forward_pre_hooks
        assert module._modules is before[name]["_modules"]
        assert vars(module).keys() == before[name].keys()
    assert training.go(1) == 0, "the graph from before is used again"


def test_a_model_that_is_read_inside_pickles_as_one_that_is_not(watch: Watch) -> None:
    model = made(Small)
    Training(model).go(1)
    run = watch(model, probes={"*": ["output_norm", "output_grad_norm"]})
    Training(model).go(2)
    assert steps_of(run, "first") == [0, 1]
    watched = pickle.dumps(model)
    run.close()
    assert watched == pickle.dumps(model)


def test_graphs_from_before_serve_steps_in_which_nothing_is_due(watch: Watch) -> None:
    model = made(Small)
    training = Training(model)
    assert training.go(2) == 1
    run = watch(model, probes={"*": [["output_norm", "every(3)"]]})
    assert [training.go(1) for _ in range(6)] == [1, 0, 0, 0, 0, 0]
    assert steps_of(run, "first") == [0, 3]
    run.close()
    assert training.go(2) == 0


def test_evaluations_in_graphs_from_before_compile_nothing(watch: Watch) -> None:
    model = made(Small)
    training = Training(model)
    training.go(1)
    model.eval()
    training.called(batch(7))
    model.train()
    watch(model, probes={"*": ["output_norm"]})
    training.go(2)
    model.eval()
    before = n_graphs()
    training.called(batch(8))
    assert n_graphs() == before


class Holder(nn.Module):
    """Finds its model in a list, and is no part of it."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.models = [model]

    def forward(self, x: Tensor) -> Tensor:
        return self.models[0](x)


def test_a_graph_that_found_the_model_anywhere_is_compiled_for_readings(watch: Watch) -> None:
    model = made(Small)
    holder = Holder(model)
    called, optimizer = whole(holder, "eager"), sgd(model)
    train_step(called, optimizer, batch(0))
    run = watch(model, probes={"first": ["output_norm"]})
    for step in range(1, 4):
        train_step(called, optimizer, batch(step))
    assert steps_of(run, "first") == [0, 1, 2]


class Refusing:
    """A compiler of graphs without effects, or of none."""

    def __init__(self, refuses_all: bool = False) -> None:
        self.refuses_all = refuses_all

    def __call__(self, graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
        readings = graph.graph.find_nodes(op="call_function", target=traced._hand_out_all)
        if self.refuses_all or readings:
            raise NotImplementedError("no effects")
        return graph.forward


def test_a_backend_that_refuses_readings_compiles_without_them_and_the_status_says_so(
    watch: Watch,
) -> None:
    alone, model = made(Small), made(Small)
    left = trained(alone, whole(alone, Refusing()), range(3))
    torch._dynamo.reset()
    run = watch(model, probes={"first": ["output_norm", "weight_norm"]})
    before = n_graphs()
    assert trained(model, whole(model, Refusing()), range(3)) == left
    run.controls.settle()
    notes = {probe.quantity: probe.note for probe in run.probes()}
    assert "backend" in notes["output_norm"]
    assert notes["weight_norm"] == ""
    assert n_graphs() - before == 1
    assert n_breaks() == 0


def test_a_backend_that_refuses_everything_raises_its_own_error(watch: Watch) -> None:
    model = made(Small)
    run = watch(model, probes={"first": ["output_norm"]})
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="no effects"):
        trained(model, whole(model, Refusing(refuses_all=True)), range(1))
    assert run._parts.observer.in_graphs.refusal == ""


@pytest.mark.parametrize("strict", [True, False])
def test_an_exported_program_has_no_readings(watch: Watch, strict: bool) -> None:
    alone, model = made(Small), made(Small)
    watch(model, probes={"*": ["output_norm", "output_grad_norm"]})
    codes = [
        torch.export.export(one, (batch(0),), strict=strict).graph_module.code
        for one in (alone, model)
    ]
    assert codes[0] == codes[1]


def test_watching_changes_no_bit_of_what_is_trained(watch: Watch) -> None:
    alone, model = made(Small), made(Small)
    left = trained(alone, whole(alone), range(3))
    watch(model, probes={"*": ["output_norm", "output_grad_norm", "output_std"]})
    assert trained(model, whole(model), range(3)) == left
    assert differing(everything(alone), everything(model)) == []


def test_what_is_no_sum_says_that_it_is_not_measured_inside(watch: Watch) -> None:
    model = made(Small)
    run = watch(model, probes={"first": ["output_norm", "effective_rank", "output_quantiles"]})
    Training(model).go(3)
    run.controls.settle()
    notes = {probe.quantity: probe.note for probe in run.probes()}
    assert notes["output_norm"] == ""
    assert "sums" in notes["effective_rank"]
    assert "sums" in notes["output_quantiles"]


def test_eager_steps_measure_the_rest_on_request(watch: Watch) -> None:
    model = made(Small)
    run = watch(model, probes={"first": ["output_norm", "effective_rank"]}, budget=None)
    training = Training(model)
    training.go(2)
    assert run.on_compiled == "inside"
    run.on_compiled = "eager"  # from the next step on
    training.go(3)
    assert steps_of(run, "first", "effective_rank") == [3, 4]
    run.on_compiled = "inside"
    training.go(3)
    assert steps_of(run, "first") == list(range(8))
    assert steps_of(run, "first", "effective_rank")[:2] == [3, 4]


def sequential() -> nn.Sequential:
    return nn.Sequential(OrderedDict(first=nn.Linear(4, 8), last=nn.Linear(8, 2)))


@pytest.mark.parametrize("make", [Small, sequential])
def test_no_variant_is_compiled_where_dynamo_would_refuse_it(
    make: Callable[[], nn.Module], watch: Watch
) -> None:
    model = made(make)
    training = Training(model)
    with torch._dynamo.config.patch(recompile_limit=2):
        training.go(1)
        run = watch(model, probes={"first": ["output_norm"]}, budget=None)
        training.go(3)
    run.controls.settle()
    assert "recompile_limit" in run.probes()[0].note
    assert n_breaks() == 0


def test_a_torch_that_cannot_trace_them_skips_and_says_so(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traced, "_is_defined", False)
    model = made(Small)
    run = watch(model, probes={"first": ["output_norm", "weight_norm"]})
    assert run.on_compiled == "skip"
    training = Training(model)
    training.go(2)
    run.controls.settle()
    notes = {probe.quantity: probe.note for probe in run.probes()}
    assert "torch 2.13" in notes["output_norm"]
    assert notes["weight_norm"] == ""


def test_a_step_that_a_scaler_skips_is_not_pooled(watch: Watch) -> None:
    model = made(Small)
    run = watch(model, probes={"first": ["output_norm", "output_grad_norm"]}, budget=None)
    called, optimizer = whole(model, "eager"), SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    for step, factor in enumerate((1.0, float("inf"), 1.0)):
        optimizer.zero_grad()
        scaler.scale(factor * loss_of(called(batch(step)))).backward()
        scaler.step(optimizer)
        scaler.update()
    run.controls.settle()
    assert run.data.calls.sel(module="first").values.tolist() == [1, 1]


def test_a_forward_that_raises_leaves_nothing_in_the_next_step(watch: Watch) -> None:
    model = made(Small)
    run = watch(model, probes={"first": ["output_norm"]}, budget=None)
    training = Training(model)
    training.go(1)
    with pytest.raises(RuntimeError):
        training.called(torch.ones(5, 3))
    training.go(1)
    run.controls.settle()
    assert run.data.calls.sel(module="first").values.tolist() == [1, 1]


class Choosing(nn.Module):
    """Runs one of two modules, as the data say."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.cond(x.sum() > 0, lambda x: self.first(x), lambda x: x.sin(), (x,))
        return self.last(x)


def test_modules_in_a_branch_are_not_read_and_the_model_trains_on(watch: Watch) -> None:
    model = made(Choosing)
    run = watch(model, probes={"*": ["output_norm", "output_grad_norm"]}, budget=None)
    called = whole(model)
    trained(model, called, range(2))
    assert steps_of(run, "last") == [0, 1]
    notes = {(probe.module, probe.quantity): probe.note for probe in run.probes()}
    assert "compiled" in notes["first", "output_norm"]


class Mapped(nn.Module):
    """Calls a module for each sample, and one with autocast."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.func.vmap(self.first)(x)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.last(x).float()


def test_what_torch_transforms_is_not_read_and_what_is_half_precision_is(watch: Watch) -> None:
    model = made(Mapped)
    run = watch(model, probes={"*": ["output_norm", "output_grad_norm"]}, budget=None)
    trained(model, whole(model), range(2))
    assert steps_of(run, "last") == steps_of(run, "last", "output_grad_norm") == [0, 1]
    notes = {(probe.module, probe.quantity): probe.note for probe in run.probes()}
    assert "compiled" in notes["first", "output_norm"]


def test_blocks_of_an_eager_model_switch_with_its_steps(watch: Watch) -> None:
    model = made(Wrapped)
    run = watch(model, probes={"block.first": [["output_norm", "every(2)"]]})
    model.block.compile(backend="eager", fullgraph=True)
    before, optimizer = n_graphs(), sgd(model)
    for step in range(5):
        train_step(model, optimizer, batch(step))
    assert steps_of(run, "block.first") == [0, 2, 4]
    assert n_graphs() - before == 2


def test_counters_that_the_user_clears_hide_no_graph(watch: Watch) -> None:
    counters.clear()
    model = made(Small)
    run = watch(model, probes={"first": [["output_norm", "every(2)"]]})
    training = Training(model)
    for _ in range(3):
        training.go(1)
        counters.clear()
    training.go(2)
    assert steps_of(run, "first") == [0, 2, 4]


def test_the_status_says_that_readings_are_compiled_while_they_are(watch: Watch) -> None:
    model, seen = made(Small), []
    run = watch(model, probes={"first": [["output_norm", "every(2)"]]})

    def compile_slowly(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., Any]:
        status = run.status()
        seen.append((status.compiling, status.state, "compiling the readings" in str(status)))
        return graph.forward

    called, optimizer = whole(model, compile_slowly), sgd(model)
    for step in range(4):
        assert not run.status().compiling
        train_step(called, optimizer, batch(step))
    assert seen[0] == (True, "training", True)
    assert seen[-1][0] is False, "the graph without readings"
    assert len(seen) == 2


def test_the_device_and_the_mode_in_which_a_run_begins_do_not_matter(watch: Watch) -> None:
    model = made(Small)
    with torch.device("meta"), torch.inference_mode():
        run = watch(model, probes={"first": ["output_norm", "output_grad_norm"]})
    trained(model, whole(model), range(2))
    assert steps_of(run, "first") == steps_of(run, "first", "output_grad_norm") == [0, 1]


class Selecting(nn.Module):
    """Has an output of a size that the data decide."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.some = nn.Linear(4, 4), Positive()

    def forward(self, x: Tensor) -> Tensor:
        return self.some(self.first(x)).sum()


class Positive(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x[x > 0]


def test_an_output_of_a_size_that_data_decide_stops_no_training(watch: Watch) -> None:
    model, alone = made(Selecting), made(Selecting)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        left = trained(alone, whole(alone), range(2))
        run = watch(model, probes={"*": ["output_norm", "output_grad_norm", "input_norm"]})
        assert trained(model, whole(model), range(2)) == left
    assert steps_of(run, "first") == steps_of(run, "first", "output_grad_norm") == [0, 1]
    assert steps_of(run, "some", "input_norm") == [0, 1]
    assert differing(everything(alone), everything(model)) == []
