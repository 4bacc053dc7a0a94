"""The graph of a watched model: built between two steps, kept once, and training feels nothing."""

from __future__ import annotations

import gc
import json
import time
import weakref
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Thread, Timer
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import notebook_probe as nbp
from notebook_probe.errors import ClosedRunError, MissingExtraError, NoGraphError
from notebook_probe.graph import Graph, onnx_file
from notebook_probe.record.format.notes import MODEL_GRAPH
from notebook_probe.record.format.source import Event as Happened
from notebook_probe.run.actions import graph_actions
from notebook_probe.run.attach.requests import BuildGraph, Request
from notebook_probe.run.gate import Gate
from notebook_probe.run.health import meter
from tests.models import Shared, equal, floats, made, mean_square, mlp, sgd, train
from tests.run.conftest import Watch
from tests.run.loops import applied, training, wait_until

batch = floats(5, 4)


def kept(run: nbp.Run | nbp.OpenedRun) -> list[Happened]:
    return [event for event in run.events if event.kind == MODEL_GRAPH]


def test_a_graph_is_built_recorded_and_read_again(watch: Watch, tmp_path: Path) -> None:
    model = made(mlp)
    run = watch(model, sgd(model), store=tmp_path / "run.zarr")
    graph = run.graph(torch.ones(5, 4))
    assert graph.how == "exported"
    (event,) = kept(run)
    assert event.text == "Sequential: exported, 3 operators of 3 modules"
    assert Graph.from_json(json.loads(event.detail)["graph"]) == graph
    assert run.graph() == graph
    run.graph(torch.ones(5, 4))
    assert len(kept(run)) == 1
    run.close()
    assert nbp.open_run(tmp_path / "run.zarr").graph() == run.graph() == graph


def test_a_request_is_answered_by_the_graph_of_the_next_step(watch: Watch) -> None:
    model = made(mlp)
    run, optimizer = watch(model, sgd(model)), sgd(model)
    train(model, optimizer, batch, range(2))
    ticket = run.controls.put(BuildGraph())
    train(model, optimizer, batch, range(2, 5))
    assert (ticket.state, ticket.applied_step) == ("applied", 2)
    assert ticket.text == ("the graph is built from the next call of the model, after that step")
    train(model, optimizer, batch, range(5, 6))
    (event,) = kept(run)
    assert event.step == 4
    assert run.graph().nodes[-1].shape == (5, 2)
    assert not [hook for hook in model._forward_pre_hooks.values() if "OnCall" in repr(hook)]


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let a minute pass, after which no step has ended lately."""
    passed_s = [0.0]
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + passed_s[0])
    monkeypatch.setattr(meter, "time", SimpleNamespace(**{**vars(time), **vars(clock)}))
    return lambda: passed_s.append(passed_s.pop() + 60)


def test_a_run_at_rest_answers_at_once_by_the_shapes_of_its_inputs(
    watch: Watch, later: Callable[[], None]
) -> None:
    model = made(mlp)
    optimizer = sgd(model)
    run = watch(model, optimizer)
    train(model, optimizer, batch, range(3))
    later()
    before = {name: one.clone() for name, one in model.state_dict().items()}
    random = torch.get_rng_state()
    ticket = run.controls.put(BuildGraph())
    assert (ticket.state, ticket.text) == (
        "applied",
        "Sequential: exported, 3 operators of 3 modules",
    )
    (event,) = kept(run)
    assert run.graph().nodes[-1].shape == (5, 2)
    assert all(torch.equal(before[name], one) for name, one in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), random)
    train(model, optimizer, batch, range(3, 5))
    run.flush()
    norms = run.series("0", "grad_norm")
    assert norms.step.values.tolist() == [0, 1, 2, 3, 4], "the step that was open is whole"
    assert event.step == 2


def test_no_batch_is_kept_for_it(watch: Watch) -> None:
    model = made(mlp)
    run, optimizer = watch(model, sgd(model)), sgd(model)
    given: list[weakref.ref[torch.Tensor]] = []

    def noted(step: int) -> torch.Tensor:
        x = floats(5, 4)(step)
        given.append(weakref.ref(x))
        return x

    train(model, optimizer, noted, range(3))
    run.controls.settle()
    gc.collect()
    assert [one() is None for one in given] == [True, True, True]


@pytest.mark.parametrize("keeps", [True, False], ids=["kept calls", "as on an accelerator"])
def test_arguments_that_may_hold_memory_wait_for_the_next_step(
    keeps: bool, watch: Watch, later: Callable[[], None]
) -> None:
    class Cached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 2)

        def forward(self, x: torch.Tensor, cache: Any) -> torch.Tensor:
            return self.linear(x)

    model = Cached()
    optimizer = sgd(model)
    run = watch(model, optimizer)
    run._parts.observer.calls.wanted = keeps
    for _ in range(3):
        model(torch.ones(3, 4), SimpleNamespace()).sum().backward()
        optimizer.step()
    later()
    assert run.controls.put(BuildGraph()).text == (
        "the graph is built from the next call of the model, after that step"
    )


def test_the_batch_that_is_kept_is_taken_at_once(watch: Watch) -> None:
    model = made(mlp)
    run, optimizer = watch(model, sgd(model)), sgd(model)
    run.probe_batch(torch.ones(7, 4), torch.ones(7, 2), mean_square)
    ticket = run.controls.put(BuildGraph())
    train(model, optimizer, batch, range(1))
    assert ticket.text == "Sequential: exported, 3 operators of 3 modules"
    assert run.graph().nodes[-1].shape == (7, 2)


def test_a_loop_that_ends_after_the_step_has_its_graph(watch: Watch) -> None:
    model = made(mlp)
    run, optimizer = watch(model, sgd(model)), sgd(model)
    run.controls.put(BuildGraph())
    train(model, optimizer, batch, range(2))
    run.controls.settle()
    assert run.graph().how == "exported"


def test_a_model_that_is_never_called_itself_has_the_tree(watch: Watch) -> None:
    model = made(mlp)
    run, optimizer = watch(model, sgd(model)), sgd(model)
    run.controls.put(BuildGraph())
    for step in range(3):
        optimizer.zero_grad()
        model[2](model[1](model[0](batch(step)))).square().mean().backward()
        optimizer.step()
    run.controls.settle()
    graph = run.graph()
    assert graph.how == "tree"
    assert "the model itself was not called in step 0 and the next" in graph.why


def test_without_a_batch_the_tree_says_what_is_missing(watch: Watch) -> None:
    run = watch(made(mlp))
    graph = run.graph()
    assert (graph.how, [node.module for node in graph.nodes]) == ("tree", ["0", "1", "2"])
    assert "run.graph(inputs)" in graph.why
    assert not kept(run)


def test_a_run_in_the_background_builds_it_between_two_of_its_steps(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    with training(run, model):
        graph = run.graph(torch.ones(3, 4))
        assert graph.nodes[-1].shape == (3, 2)
        assert applied(run, BuildGraph()).state == "applied"


def test_who_waits_for_a_training_that_ends_builds_it_itself(watch: Watch) -> None:
    model = made(mlp)
    run, leave = watch(model), Event()

    def trained() -> None:
        train(model, sgd(model), batch, range(2))
        leave.wait()

    thread = Thread(target=trained)
    thread.start()
    wait_until(lambda: run.controls.open_step == 1)
    Timer(0.05, leave.set).start()
    assert run.graph(torch.ones(3, 4)).nodes[-1].shape == (3, 2)
    thread.join()


def test_a_closed_run_without_one_says_so(watch: Watch) -> None:
    run = watch(made(mlp))
    run.log(loss=1.0)
    run.close()
    with pytest.raises(NoGraphError, match=r"has no graph of its network; run.graph\(inputs\)"):
        run.graph()
    with pytest.raises(ClosedRunError):
        run.graph(torch.ones(2, 4))


def test_a_model_that_has_got_other_modules_has_another_graph(watch: Watch) -> None:
    model = made(mlp)
    run = watch(model)
    run.graph(torch.ones(2, 4))
    model[2] = nn.Sequential(nn.Linear(8, 3))
    del model[1]
    assert run.graph().how == "tree"


@pytest.mark.parametrize("make", [mlp, Shared])
def test_weights_and_every_recorded_number_are_equal_bit_for_bit(watch: Watch, make: Any) -> None:
    def trained(with_graph: bool) -> tuple[nn.Module, nbp.Run]:
        model = made(make)
        run, optimizer = watch(model, sgd(model)), sgd(model)
        train(model, optimizer, batch, range(3))
        if with_graph:
            run.controls.put(BuildGraph())
            run.graph(torch.ones(2, 4))  # while the last step is not closed
        train(model, optimizer, batch, range(3, 6))
        run.controls.settle()
        return model, run

    (plain, without), (model, run) = trained(False), trained(True)
    assert equal(plain, model)
    assert len(kept(run)) == 2
    left, right = without.data, run.data
    assert left.sizes == right.sizes
    for name in left.data_vars:
        np.testing.assert_array_equal(left[name], right[name], err_msg=str(name))


def test_nobody_else_notes_events_of_its_kind(watch: Watch) -> None:
    with pytest.raises(ValueError, match="model_graph"):
        watch(made(mlp)).note(MODEL_GRAPH, "mine")


def test_without_onnx_the_error_says_what_to_install(watch: Watch, tmp_path: Path) -> None:
    if find_spec("onnx"):
        pytest.skip("onnx is installed")
    with pytest.raises(MissingExtraError, match=r"pip install 'notebook-probe\[onnx\]'"):
        watch(made(mlp)).to_onnx(tmp_path / "network.onnx", torch.ones(2, 4))


def test_an_onnx_file_needs_a_batch_and_a_network_that_can_be_exported(
    watch: Watch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_actions, "check_onnx", lambda: None)
    monkeypatch.setattr(onnx_file, "check_onnx", lambda: None)
    run = watch(made(mlp))
    with pytest.raises(NoGraphError, match="no batch is known: give inputs, or keep a batch"):
        run.to_onnx(tmp_path / "network.onnx")
    with pytest.raises(NoGraphError, match=r"to_onnx\(.*network.onnx.*\): RuntimeError: "):
        run.to_onnx(tmp_path / "network.onnx", torch.ones(2, 9))


def test_an_onnx_file_with_another_ending_is_refused(watch: Watch, tmp_path: Path) -> None:
    with pytest.raises(
        ValueError, match=r"network\.pt'; allowed: a file name that ends with \.onnx"
    ):
        watch(made(mlp)).to_onnx(tmp_path / "network.pt", torch.ones(2, 4))


def test_what_building_takes_is_no_cost_of_watching() -> None:
    gate = Gate(0, Unmoved())
    gate.each_boundary(lambda: gate.excuse(5.0))
    assert gate.pass_to(0) == gate.pass_to(1) == 5.0


class Unmoved:
    """A boundary at which nothing is done."""

    def apply(self, request: Request, step: int) -> str:
        return ""

    def change(self, step: int) -> bool:
        return False
