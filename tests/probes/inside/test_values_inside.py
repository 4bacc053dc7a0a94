"""Sums that compiled graphs hand out are those of an eager twin in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from tests.models import made, sgd, train_step
from tests.probes.inside.compiled_models import (
    QUANTITIES,
    Checkpointed,
    Shared,
    Small,
    Wrapped,
    batch,
    n_breaks,
    n_graphs,
    told_by_twin,
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

PLACES = ("first", "norm", "relu", "last")


def asked(places: Sequence[str], schedule: str = "every(1)") -> dict[str, list[list[str]]]:
    return {place: [[quantity, schedule] for quantity in QUANTITIES] for place in places}


def check(
    run: nbp.Run, wanted: dict[tuple[str, str], list[float]], steps: Sequence[int] | None = None
) -> None:
    run.controls.settle()
    for (place, quantity), values in wanted.items():
        series = run.series(place, quantity)
        due = list(range(len(values))) if steps is None else list(steps)
        assert series.step.values.tolist() == due
        np.testing.assert_allclose(
            series,
            [values[step] for step in due],
            rtol=2e-5,
            atol=1e-6,
            err_msg=f"{quantity} at {place}",
        )
    assert not run.status().errors


def in_place(model: nn.Module) -> nn.Module:
    model.compile(backend="aot_eager", fullgraph=True)
    return model


@pytest.mark.parametrize("way", [whole, in_place])
@pytest.mark.parametrize("watched_first", [True, False])
def test_a_model_compiled_whole_has_the_values_of_its_eager_twin(
    way: Callable[[nn.Module], Any], watched_first: bool, watch: Watch
) -> None:
    model = made(Small)
    wanted = told_by_twin(model, PLACES, 3)
    before, called = n_graphs(), model if watched_first else way(model)
    run = watch(model, probes=asked(PLACES))
    called = way(model) if watched_first else called
    trained(model, called, range(3))
    check(run, wanted)
    assert n_graphs() - before == 1
    assert n_breaks() == 0
    assert run.data.calls.sel(module="first").values.tolist() == [1, 1, 1]


def test_inductor_hands_out_the_same_and_trains_the_same_bits(watch: Watch) -> None:
    model, alone = made(Small), made(Small)
    wanted = told_by_twin(model, ["relu"], 3)
    left = trained(alone, whole(alone, "inductor"), range(3))
    before = n_graphs()
    run = watch(model, probes=asked(["relu"], "every(2)"))
    assert trained(model, whole(model, "inductor"), range(3)) == left
    assert differing(everything(alone), everything(model)) == []
    check(run, wanted, [0, 2])
    assert n_graphs() - before == 1, "step 1 runs in the graph of its unwatched twin"
    assert n_breaks() == 0


def test_a_module_that_is_called_twice_is_pooled_over_its_calls(watch: Watch) -> None:
    model = made(Shared)
    wanted = told_by_twin(model, ["twice", "frozen"], 2)
    assert ("frozen", "output_grad_norm") not in wanted
    run = watch(model, probes=asked(["twice", "frozen"]))
    trained(model, whole(model), range(2))
    check(run, wanted)
    assert run.data.calls.sel(module="twice").values.tolist() == [2, 2]


def micro_batches(step: int) -> list[Tensor]:
    return [batch(10 * step + i) for i in range(3)]


def test_micro_batches_are_pooled(watch: Watch) -> None:
    model = made(Small)
    wanted = told_by_twin(model, PLACES, 2, micro_batches)
    run = watch(model, probes=asked(PLACES))
    trained(model, whole(model), range(2), micro_batches)
    check(run, wanted)


def test_a_checkpoint_inside_counts_once(watch: Watch) -> None:
    model = made(Checkpointed)
    places = ["body.first", "body.relu", "last"]
    wanted = told_by_twin(model, places, 2)
    run = watch(model, probes=asked(places))
    trained(model, whole(model), range(2))
    check(run, wanted)
    assert n_breaks() == 0


def sizes(step: int) -> list[Tensor]:
    return [torch.cat([batch(step + i) for i in range(1 + step)])]


def test_batches_of_any_size_are_read_by_one_dynamic_graph(watch: Watch) -> None:
    model = made(Small)
    wanted, before = told_by_twin(model, PLACES, 3, sizes), n_graphs()
    run = watch(model, probes=asked(PLACES))
    trained(model, whole(model, dynamic=True), range(3), sizes)
    check(run, wanted)
    assert n_graphs() - before == 1


def test_a_block_compiled_alone_is_read_inside_and_the_rest_as_ever(watch: Watch) -> None:
    model = made(Wrapped)
    places = ["before", "block.first", "block.relu", "block", "after"]
    wanted = told_by_twin(model, places, 3)
    run = watch(model, probes=asked(places))
    model.block.compile(backend="aot_eager", fullgraph=True)
    trained(model, model, range(3))
    check(run, wanted)


def test_a_compiled_function_round_the_model_is_read_too(watch: Watch) -> None:
    model = made(Small)
    wanted = told_by_twin(model, PLACES, 2)
    run = watch(model, probes=asked(PLACES))

    @torch.compile(backend="aot_eager")
    def called(x: Tensor) -> Any:
        return model(x)

    trained(model, called, range(2))
    check(run, wanted)


def test_infinite_values_and_none_are_told(watch: Watch) -> None:
    model = made(Small)
    run = watch(model, probes={"first": ["nonfinite_fraction", "output_mean", "output_norm"]})
    called, optimizer = whole(model), sgd(model)
    for step in range(2):
        x = batch(step)
        x[0, 0] = float("inf")
        optimizer.zero_grad()
        called(x)[1:].sum().backward()
        optimizer.step()
        break
    run.controls.settle()
    assert run.series("first", "nonfinite_fraction").values.tolist() == [pytest.approx(0.2)]
    assert not np.isfinite(run.series("first", "output_norm").values[0])


def test_an_evaluation_in_between_is_no_part_of_the_step(watch: Watch) -> None:
    model = made(Small)
    wanted = told_by_twin(model, PLACES, 2)
    run = watch(model, probes=asked(PLACES))
    called, optimizer = whole(model), sgd(model)
    for step in range(2):
        train_step(called, optimizer, batch(step))
        with torch.no_grad():
            called(batch(7))
        model.eval()
        called(batch(8))
        model.train()
    check(run, wanted)


def test_a_call_without_a_backward_does_not_count(watch: Watch) -> None:
    model = made(Small)
    wanted = told_by_twin(model, PLACES, 1)
    run = watch(model, probes=asked(PLACES))
    called, optimizer = whole(model), sgd(model)
    optimizer.zero_grad()
    (called(batch(0)) - 0.3).square().mean().backward()
    called(batch(9))  # only looked at
    optimizer.step()
    check(run, wanted)


def test_where_it_cannot_be_known_which_call_had_a_backward_nothing_is_recorded(
    watch: Watch,
) -> None:
    model = made(Small)
    run = watch(model, probes=asked(["first"]))
    called, optimizer = whole(model), sgd(model)
    called(batch(9))
    (called(batch(0)) - 0.3).square().mean().backward()
    optimizer.step()
    run.controls.settle()
    notes = {probe.quantity: probe for probe in run.probes()}
    assert notes["output_norm"].n_values == 0
    assert "backward" in notes["output_norm"].note


def test_gradients_that_were_cleared_do_not_count(watch: Watch) -> None:
    model = made(Small)
    wanted = told_by_twin(model, PLACES, 1)
    run = watch(model, probes=asked(PLACES))
    called, optimizer = whole(model), sgd(model)
    called(batch(9)).sum().backward()
    optimizer.zero_grad()
    (called(batch(0)) - 0.3).square().mean().backward()
    optimizer.step()
    check(run, wanted)
