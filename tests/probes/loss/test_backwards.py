"""What stands in torch's place while anybody listens, and that nothing is left of it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from notebook_probe.probes.loss.backwards import ENGINE, listen
from notebook_probe.quantities.reduce.stat import Number
from tests.models import floats, made, mlp, sgd, train_step
from tests.run.conftest import Watch

batch = floats(6, 4)


def standing() -> Any:
    return getattr(torch.autograd, ENGINE)


@pytest.fixture(autouse=True)
def original() -> Iterator[Any]:
    """Whatever a test does, torch is as it was in the end."""
    before, public = standing(), (torch.autograd.backward, torch.Tensor.backward)
    yield before
    assert standing() is before
    assert (torch.autograd.backward, torch.Tensor.backward) == public


class Heard:
    """Notes what it is told."""

    def __init__(self) -> None:
        self.listens = True
        self.losses: list[Number] = []
        self.ended: list[bool] = []
        self.took: list[float] = []

    def backward_begins(self, loss: Number, roots: object) -> int:
        self.losses.append(loss)
        return len(self.losses)

    def backward_ends(self, begun: Any, since: float, *, has_come_through: bool) -> None:
        self.ended.append(has_come_through)
        self.took.append(time.perf_counter() - since)


class Fails(Heard):
    def backward_begins(self, loss: Number, roots: object) -> int:
        raise ValueError("of ours")

    def backward_ends(self, begun: Any, since: float, *, has_come_through: bool) -> None:
        raise ValueError("of ours")


def backward(value: float = 1.0) -> None:
    torch.tensor(value, requires_grad=True).mul(2).backward()


@pytest.mark.parametrize("order", [*itertools.permutations(range(3))])
def test_runs_that_end_in_any_order_leave_torch_as_it_was(
    order: tuple[int, ...], original: Any
) -> None:
    heard = [Heard() for _ in range(3)]
    ends = [listen(one) for one in heard]
    for n_ended, which in enumerate(order):
        backward()
        assert standing() is not original
        ends[which]()
        assert [len(one.losses) for one in heard].count(n_ended + 1) >= 1
    assert standing() is original
    backward()
    assert sorted(len(one.losses) for one in heard) == [1, 2, 3]


def test_what_others_have_put_over_ours_stays_and_ours_tells_nobody(original: Any) -> None:
    first, second, seen = Heard(), Heard(), []
    end = listen(first)
    covered = standing()

    def theirs(*args: Any, **kwargs: Any) -> Any:
        seen.append(1)
        return covered(*args, **kwargs)

    try:
        setattr(torch.autograd, ENGINE, theirs)
        backward()
        end()
        assert standing() is theirs
        backward()
        end = listen(second)
        backward(3.0)
        end()
        assert standing() is theirs
    finally:
        setattr(torch.autograd, ENGINE, original)
    assert (first.losses, second.losses, len(seen)) == ([2.0], [6.0], 3)


def test_a_failure_of_ours_never_reaches_the_pass() -> None:
    listener, heard = Fails(), Heard()
    ends = [listen(listener), listen(heard)]
    value = torch.tensor(1.0, requires_grad=True)
    (value * 2).backward()
    for end in ends:
        end()
    assert value.grad is not None
    assert value.grad.item() == 2.0


def test_each_who_hears_of_a_pass_is_told_its_share_of_what_that_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The clock advances by a second at each call: one before the pass, shared by two.

    After the pass one second each, in which nothing else is told.
    """
    monkeypatch.setattr("time.perf_counter", map(float, itertools.count()).__next__)
    heard = Heard(), Heard()
    ends = [listen(one) for one in heard]
    backward()
    for end in ends:
        end()
    assert [one.took for one in heard] == [[0.5 + 1.0], [0.5 + 1.0]]


def test_one_who_is_gone_is_told_nothing() -> None:
    listener = Heard()
    end = listen(listener)
    del listener
    backward()
    end()


def test_only_passes_that_accumulate_are_told() -> None:
    heard = Heard()
    end = listen(heard)
    value = torch.tensor(1.0, requires_grad=True)
    torch.autograd.grad(value * 2, value)
    torch.autograd.backward([value * 3], inputs=[value])
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.ones(()).backward()
    end()
    assert (heard.losses, heard.ended[0]) == ([3.0, *heard.losses[1:]], True)
    assert not any(heard.ended[1:])


def test_a_run_stands_there_from_its_beginning_to_its_end(watch: Watch, original: Any) -> None:
    model, other = made(mlp), made(mlp)
    runs = [watch(model), watch(other)]
    train_step(model, sgd(model), batch(0))
    assert standing() is not original
    runs[0].close()
    assert standing() is not original
    runs[1].close()
    assert standing() is original
