"""Inputs of the last call: by weak references, in any container, and never kept in memory."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from notebook_probe.probes.loss.kept_calls import KeptCalls, LatestCalls


@dataclass
class Pair:
    """An object of a user's, which holds tensors."""

    one: Tensor
    other: Tensor


def followed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> LatestCalls:
    calls = KeptCalls()
    calls.follow(is_followed=True)
    calls.keep_latest(7, args, kwargs)
    assert calls.latest is not None
    return calls.latest


CALLS: dict[str, Callable[[Tensor, Tensor], tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "positions": lambda x, y: ((x, y), {}),
    "keywords": lambda x, y: ((), {"x": x, "y": y}),
    "both": lambda x, y: ((x,), {"y": y}),
    "a list": lambda x, y: (([x],), {"y": y}),
    "a dict": lambda x, y: (({"x": x, "y": y}, True), {"scale": 2.0}),
    "the same twice": lambda x, y: ((x, x), {"y": y}),
}


@pytest.mark.parametrize("made", CALLS.values(), ids=CALLS)
def test_the_last_call_is_given_back_as_it_was(
    made: Callable[[Tensor, Tensor], tuple[tuple[Any, ...], dict[str, Any]]],
) -> None:
    args, kwargs = made(torch.ones(2), torch.zeros(3))
    found = followed(args, kwargs).last_unchanged()
    assert found is not None
    step, call = found
    assert (step, len(call.args), [*call.kwargs]) == (7, len(args), [*kwargs])
    flat, wanted = (
        torch.utils._pytree.tree_leaves(one)
        for one in ([call.args, dict(call.kwargs)], [args, kwargs])
    )
    assert [id(one) for one in flat] == [id(one) for one in wanted]


@pytest.mark.parametrize("made", CALLS.values(), ids=CALLS)
def test_a_followed_call_keeps_no_tensor(
    made: Callable[[Tensor, Tensor], tuple[tuple[Any, ...], dict[str, Any]]],
) -> None:
    args, kwargs = made(torch.ones(2), torch.zeros(3))
    references = [
        weakref.ref(one)
        for one in torch.utils._pytree.tree_leaves([args, kwargs])
        if isinstance(one, Tensor)
    ]
    latest = followed(args, kwargs)
    del args, kwargs
    gc.collect()
    assert latest.last_unchanged() is None
    assert [one() for one in references] == [None] * len(references)


def test_a_call_with_an_object_that_holds_tensors_is_not_followed() -> None:
    assert followed((Pair(torch.ones(1), torch.ones(1)),), {}).last is None


def test_a_call_whose_inputs_were_written_to_is_not_given_back() -> None:
    x = torch.ones(2)
    latest = followed((x,), {})
    x.add_(1)
    assert latest.last_unchanged() is None


def test_inputs_of_awaited_steps_are_kept_until_training_has_gone_on() -> None:
    calls = KeptCalls()
    for step in range(4):
        calls.await_pause()
        calls.keep_latest(step, (torch.ones(2),), {})
        calls.keep_latest(step, (torch.full((2,), float(step)),), {})
    assert calls.latest is not None
    assert {step: call.args[0].tolist() for step, call in calls.latest.by_step.items()} == {
        2: [2.0, 2.0],
        3: [3.0, 3.0],
    }
    for step in (4, 5):
        calls.keep_latest(step, (torch.ones(2),), {})
    assert calls.latest.by_step == {}
    calls.keep_latest(6, (torch.ones(2),), {})
    assert calls.latest is None


def test_large_inputs_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("notebook_probe.probes.loss.kept_calls.MOST_BYTES", 100)
    calls = KeptCalls()
    calls.await_pause()
    calls.keep_latest(0, (torch.ones(26),), {})
    assert calls.latest is not None
    assert calls.latest.by_step == {}
