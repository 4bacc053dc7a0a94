"""Activation checkpointing: what is computed twice is recorded once, with all its gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
    set_checkpoint_early_stop,
)

import notebook_probe as nbp
from tests.models import floats, made, sgd
from tests.probes.oracles import (
    Noted,
    Notes,
    column,
    norm_of,
    notes_of,
    plain_loop,
    same_column,
    train_alike,
)
from tests.run.conftest import Watch
from tests.run.oracle import norm

batch = floats(6, 4)
STEPS = range(3)
QUANTITIES = ["input_norm", "output_norm", "output_mean", "output_std", "output_grad_norm"]
PLACES = ("block", "block.first", "block.drop", "block.last", "head")

Call = Callable[[Callable[..., Any], Tensor], Any]


class Block(Noted):
    """Draws random numbers, so a recomputation with others would show."""

    def __init__(self, notes_at: Noted) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 4)
        self.drop = nn.Dropout(0.3)
        self._notes_at = [notes_at]

    def forward(self, x: Tensor) -> Tensor:
        note = self._notes_at[0].note
        note("block.first input", x)
        first = note("block.first", self.first(x))
        dropped = note("block.drop", self.drop(first.tanh()))
        return note("block", note("block.last", self.last(dropped)).sigmoid())


class WithBlock(Noted):
    """Calls its block through ``call``: plainly, or by one way of checkpointing."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self.stem, self.block, self.head = nn.Linear(4, 4), Block(self), nn.Linear(4, 2)
        self._call = call

    def forward(self, x: Tensor) -> Tensor:
        return self.note("head", self.head(self._call(self.block, self.stem(x))))


def plainly(function: Callable[..., Any], x: Tensor) -> Any:
    return function(x)


def nested(function: Callable[..., Any], x: Tensor) -> Any:
    def inner(x: Tensor) -> Any:
        return checkpoint(function, x, use_reentrant=False)

    return checkpoint(inner, x, use_reentrant=False)


def without_early_stop(function: Callable[..., Any], x: Tensor) -> Any:
    with set_checkpoint_early_stop(False):
        return checkpoint(function, x, use_reentrant=False)


def in_sequence(function: Callable[..., Any], x: Tensor) -> Any:
    return checkpoint_sequential([torch.sin, function, torch.cos], 2, x, use_reentrant=False)


def in_sequence_plainly(function: Callable[..., Any], x: Tensor) -> Any:
    return function(x.sin()).cos()


def selective(function: Callable[..., Any], x: Tensor) -> Any:
    def policy(context: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
        saves = op in (torch.ops.aten.addmm.default, torch.ops.aten.mm.default)
        return CheckpointPolicy.MUST_SAVE if saves else CheckpointPolicy.PREFER_RECOMPUTE

    contexts = partial(create_selective_checkpoint_contexts, policy)
    return checkpoint(function, x, use_reentrant=False, context_fn=contexts)


CALLS: dict[str, tuple[Call, Call]] = {
    "reentrant": (partial(checkpoint, use_reentrant=True), plainly),
    "not reentrant": (partial(checkpoint, use_reentrant=False), plainly),
    "without early stop": (without_early_stop, plainly),
    "nested": (nested, plainly),
    "in sequence": (in_sequence, in_sequence_plainly),
    "selective": (selective, plainly),
}
loop = plain_loop(batch, STEPS)


def check(run: nbp.Run, notes: Notes, n_calls: int = 1) -> None:
    """What the plain twin noted is what was recorded."""
    for place in PLACES:
        parts = [slice(n_calls * step, n_calls * (step + 1)) for step in STEPS]
        outputs = [np.concatenate(notes.values(place)[part]) for part in parts]
        gradients = [np.concatenate(notes.gradients_of(place)[part]) for part in parts]
        same_column(run, place, "output_norm", [norm(y) for y in outputs])
        same_column(run, place, "output_mean", [float(y.mean()) for y in outputs], rtol=1e-4)
        same_column(run, place, "output_std", [float(y.std(ddof=1)) for y in outputs])
        same_column(run, place, "output_grad_norm", [norm(g) for g in gradients], rtol=1e-4)
        assert column(run, place, "calls") == [n_calls] * len(STEPS)
    given = notes.values("block.first input")
    wanted = [norm(np.concatenate(given[n_calls * i : n_calls * (i + 1)])) for i in STEPS]
    same_column(run, "block.first", "input_norm", wanted)
    assert run.data.step.values.tolist() == list(STEPS)
    assert not run.status().errors


@pytest.mark.parametrize("way", CALLS)
def test_every_value_is_that_of_the_same_model_without_checkpointing(
    way: str, watch: Watch
) -> None:
    checkpointed, plainly = CALLS[way]
    twin, model, oracle = (
        made(partial(WithBlock, c)) for c in (checkpointed, checkpointed, plainly)
    )
    notes = notes_of(oracle)
    run = watch(model, probes={PLACES: QUANTITIES})
    run.attach(PLACES, [output_is_detached])
    train_alike(loop, twin, model)
    # the oracle's training is that of the checkpointed model, bit for bit
    train_alike(loop, oracle, made(partial(WithBlock, checkpointed)))
    check(run, notes)


def output_is_detached(output: Tensor) -> float:
    return float(output.grad_fn is None)


@pytest.mark.parametrize("way", ["reentrant", "not reentrant", "selective"])
def test_micro_batches_of_checkpointed_blocks_are_pooled(way: str, watch: Watch) -> None:
    def accumulate(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            for micro in range(2):
                model(batch(10 * step + micro)).square().mean().backward()
            optimizer.step()

    checkpointed, plainly = CALLS[way]
    twin, model, oracle = (
        made(partial(WithBlock, c)) for c in (checkpointed, checkpointed, plainly)
    )
    notes, run = notes_of(oracle), watch(model, probes={PLACES: QUANTITIES})
    train_alike(accumulate, twin, model)
    train_alike(accumulate, oracle, made(partial(WithBlock, plainly)))
    check(run, notes, n_calls=2)


def of_rows(output: Tensor) -> Tensor:
    """Multiplies matrices, as the model itself does."""
    return (output @ output.T).trace()


@pytest.mark.parametrize("way", CALLS)
def test_a_quantity_that_computes_like_the_model_is_no_part_of_what_is_saved(
    way: str, watch: Watch
) -> None:
    """A selective checkpoint keeps results of matrix products in their order: of the model's."""

    class Bare(WithBlock):
        def __init__(self, call: Call) -> None:
            super().__init__(call)
            self.block.first = nn.Linear(4, 8, bias=False)
            self.block.last = nn.Linear(8, 4, bias=False)

    checkpointed, plainly = CALLS[way]
    twin, model, oracle = (made(partial(Bare, c)) for c in (checkpointed, checkpointed, plainly))
    notes, run = notes_of(oracle), watch(model, probes={PLACES: [of_rows]})
    train_alike(loop, twin, model)
    train_alike(loop, oracle, made(partial(Bare, plainly)))
    for place in PLACES:
        wanted = [norm(y) ** 2 for y in notes.values(place)]
        same_column(run, place, "of_rows", wanted, rtol=1e-4)
    assert not run.status().errors


@pytest.mark.parametrize("way", ["not reentrant", "nested", "without early stop"])
def test_a_whole_model_may_be_checkpointed_from_outside(way: str, watch: Watch) -> None:
    """The recomputation enters the root and may leave it half-way."""

    def outside(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            CALLS[way][0](model, batch(step)).square().mean().backward()
            optimizer.step()

    twin, model, oracle = (made(partial(WithBlock, plainly)) for _ in range(3))
    notes, run = notes_of(oracle), watch(model, probes={PLACES: QUANTITIES})
    train_alike(outside, twin, model)
    train_alike(loop, oracle, made(partial(WithBlock, plainly)))
    check(run, notes)


def test_a_watched_part_of_a_model_may_lie_in_a_reentrant_checkpoint(watch: Watch) -> None:
    """Its training forward runs without gradients, called by somebody else's model."""

    def outside(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            given = batch(step).requires_grad_()
            checkpoint(model, given, use_reentrant=True).square().mean().backward()
            optimizer.step()

    twin, model, oracle = (made(partial(WithBlock, plainly)) for _ in range(3))
    notes, run = notes_of(oracle), watch(model, probes={PLACES: QUANTITIES})
    train_alike(outside, twin, model)
    train_alike(loop, oracle, made(partial(WithBlock, plainly)))
    check(run, notes)


@pytest.mark.filterwarnings("ignore:None of the inputs have requires_grad=True")
def test_validation_between_checkpointed_steps_is_not_measured(watch: Watch) -> None:
    def validating(model: nn.Module, optimizer: Optimizer) -> None:
        for step in STEPS:
            optimizer.zero_grad()
            loss = model(batch(step)).square().mean()
            model.eval()
            with torch.no_grad():
                model(1e3 * batch(99))
            model.train()
            loss.backward()
            optimizer.step()

    checkpointed = CALLS["reentrant"][0]
    twin, model, oracle = (
        made(partial(WithBlock, c)) for c in (checkpointed, checkpointed, plainly)
    )
    notes, run = notes_of(oracle), watch(model, probes={PLACES: QUANTITIES})
    # in eval mode a recomputation would not drop what the forward dropped
    for each in (twin, model, oracle):
        each.block.drop.p = 0.0
    train_alike(validating, twin, model)
    validating(oracle, sgd(oracle))
    check(run, notes)


def test_running_statistics_move_twice_as_torch_has_it_and_are_read_at_the_first_forward(
    watch: Watch,
) -> None:
    class Normed(Noted):
        def __init__(self, call: Call) -> None:
            super().__init__()
            self.stem, self.norm, self._call = nn.Linear(4, 3), nn.BatchNorm1d(3), call

        def forward(self, x: Tensor) -> Tensor:
            return self._call(self.norm, self.stem(x))

    def moving(output: Tensor, module: nn.Module) -> Tensor:
        return module.running_mean.norm()  # type: ignore[operator]

    reads: list[float] = []

    def remember(module: nn.Module, args: Any, output: Any) -> None:
        if torch._C._current_graph_task_id() == -1:  # not in a backward
            reads.append(norm_of(module.running_mean))  # type: ignore[arg-type]

    call = CALLS["not reentrant"][0]
    twin, model = made(partial(Normed, call)), made(partial(Normed, call))
    twin.norm.register_forward_hook(remember)
    run = watch(model, probes={"norm": [moving]})
    train_alike(loop, twin, model)
    assert int(model.norm.num_batches_tracked) == 2 * len(STEPS)  # type: ignore[arg-type]
    same_column(run, "norm", "moving", reads)
