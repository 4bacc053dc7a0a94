"""Hooks that hear of a gradient, beside those that torch registers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from notebook_probe.probes.step.gradient_hooks import (
    SAMPLE,
    begins_with_zeros,
    hook_in_graph,
    hook_leaf,
)


def squares() -> tuple[Tensor, Tensor]:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    return x, x * 3


@pytest.mark.parametrize("order", [["ours", "theirs", "ours"], ["theirs", "ours", "theirs"]])
def test_hooks_of_torch_and_ours_all_hear_of_a_gradient_in_their_order(order: list[str]) -> None:
    _, y = squares()
    heard: list[tuple[str, list[float]]] = []

    def listen(name: str) -> Callable[[Tensor], None]:
        return lambda gradient: heard.append((name, gradient.tolist()))

    for name in order:
        (hook_in_graph if name == "ours" else Tensor.register_hook)(y, listen(name))
    y.square().sum().backward()
    assert heard == [(name, [6.0, 12.0]) for name in order]


def test_a_handle_of_torch_takes_off_its_own_hook_alone() -> None:
    _, y = squares()
    heard: list[str] = []
    hook_in_graph(y, lambda gradient: heard.append("ours"))
    y.register_hook(lambda gradient: heard.append("theirs")).remove()
    y.sum().backward()
    assert heard == ["ours"]


def test_what_is_hooked_before_a_change_in_place_hears_of_the_value_before_it() -> None:
    found = []
    for register in (hook_in_graph, Tensor.register_hook):
        x, y = squares()
        register(y, lambda gradient: found.append(gradient.tolist()))
        y.mul_(5)
        y.sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [15.0, 15.0]
    assert found == [[5.0, 5.0]] * 2


def test_a_leaf_is_heard_of_until_its_handle_is_removed() -> None:
    weight = nn.Parameter(torch.ones(2))
    heard: list[list[float]] = []
    handle = hook_leaf(weight, lambda gradient: heard.append(gradient.tolist()))
    weight.sum().backward()
    handle.remove()
    weight.sum().backward()
    assert heard == [[1.0, 1.0]]


def first_zero() -> Tensor:
    values = torch.zeros(3, 4)
    values[2, 1] = 0.5
    return values


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.complex64])
@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (torch.ones(3, 4), False),
        (first_zero(), False),
        (first_zero().t(), False),
        (torch.full((2,), float("nan")), False),
        (torch.zeros(3, 4), True),
        (torch.zeros(0), True),
    ],
    ids=["ones", "first zero", "turned", "NaN", "zeros", "empty"],
)
def test_a_gradient_of_any_type_begins_with_zeros_or_not(
    values: Tensor, wanted: bool, dtype: torch.dtype
) -> None:
    assert begins_with_zeros(values.to(dtype)) is wanted
    assert begins_with_zeros(values.to(dtype).requires_grad_()) is wanted  # of `create_graph`


def test_of_a_long_gradient_the_beginning_is_looked_at() -> None:
    values = torch.zeros(2 * SAMPLE)
    values[-1] = 1.0
    assert begins_with_zeros(values)
    values[SAMPLE - 1] = 1.0
    assert not begins_with_zeros(values)


def test_a_sparse_gradient_or_one_without_values_is_not_read() -> None:
    assert not begins_with_zeros(torch.zeros(3).to_sparse())
    assert not begins_with_zeros(torch.zeros(3, device="meta"))
