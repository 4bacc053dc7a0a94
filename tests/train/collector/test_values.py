"""What a value is: any real number of one element, exactly; and nothing else."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from notebook_probe import DataCollector, StepFunction
from notebook_probe.errors import UnreadableError
from tests.train.collector.loops import collected

FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn)
INTEGERS = (torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32, torch.int64)


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


@given(st.lists(st.floats(width=64), max_size=30))
def test_doubles_come_back_bit_for_bit_nan_and_infinities_too(values: list[float]) -> None:
    tensors = [torch.tensor(value, dtype=torch.float64) for value in values]
    kept = collected(DataCollector().collect_all(), tensors)  # type: ignore[arg-type]
    assert [*map(bits, kept)] == [bits(tensor.item()) for tensor in tensors]
    assert all(type(value) is float for value in kept)


@given(st.sampled_from(FLOATS), st.floats(width=32))
def test_narrow_floats_are_what_they_are(kind: torch.dtype, value: float) -> None:
    tensor = torch.tensor(value, dtype=torch.float32).to(kind)
    (kept,) = collected(DataCollector().collect_all(), [tensor])  # type: ignore[list-item]
    want = tensor.to(torch.float64).item()
    assert kept == want or (math.isnan(kept) and math.isnan(want))


@given(st.sampled_from(INTEGERS), st.data())
def test_integers_are_what_they_are(kind: torch.dtype, data: Any) -> None:
    limits = torch.iinfo(kind)
    value = data.draw(st.integers(max(limits.min, -(2**53)), min(limits.max, 2**53)))
    (kept,) = collected(DataCollector().collect_all(), [torch.tensor(value, dtype=kind)])  # type: ignore[list-item]
    assert kept == value


@pytest.mark.parametrize(
    "value",
    [3, 0.1, np.float32(0.1), np.int64(7), np.uint8(7), torch.tensor([[[2.5]]]), torch.tensor([1])],
)
def test_numbers_and_tensors_of_one_element_in_any_shape_count(value: Any) -> None:
    assert collected(DataCollector().collect_all(), [value]) == [float(value)]


def test_values_are_those_of_the_moment_and_have_no_graph() -> None:
    weight = torch.tensor([1.5], requires_grad=True)
    changing = weight.detach().clone()

    def values() -> Iterator[Any]:
        yield weight * 2
        yield changing
        changing.fill_(9.0)

    assert collected(DataCollector().collect_all(), values()) == [3.0, 1.5]


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (torch.zeros(2), ValueError, r"collect\(\.\.\., 's'\): a tensor of shape \(2,\); one elem"),
        (torch.zeros(0), ValueError, r"shape \(0,\)"),
        (torch.tensor(True), TypeError, r"a tensor of torch.bool; allowed: real floating-point"),
        (torch.tensor(1j), TypeError, "torch.complex64"),
        (torch.ones((), device="meta"), UnreadableError, "holds no values"),
        (True, TypeError, "bool True; a tensor of one element or a real number is expected"),
        (1j, TypeError, "complex 1j"),
        ("0.5", TypeError, "str '0.5'"),
        (None, TypeError, "NoneType None"),
        ([1.0], TypeError, r"list \[1\.0\]"),
        (10**400, ValueError, "too large for float64"),
    ],
)
def test_anything_else_is_refused_where_it_is_given(
    value: Any, error: type[Exception], message: str
) -> None:
    collector = DataCollector().collect_all()
    step = StepFunction(lambda: collector.collect(value, "s"))
    with collector.attach_to_executor(step), pytest.raises(error, match=message):
        step()
    assert collector.get_all_series_names() == []


def test_a_series_has_a_name() -> None:
    collector = DataCollector().collect_all()
    step = StepFunction(lambda: collector.collect(1.0, 3))  # type: ignore[arg-type]
    with collector.attach_to_executor(step), pytest.raises(TypeError, match=r"3.*name of a series"):
        step()


def test_a_tensor_class_of_the_users_own_is_read_as_a_plain_one() -> None:
    class Refusing(Tensor):
        @classmethod
        def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None):  # type: ignore[no-untyped-def]
            raise AssertionError("asked")

    value = torch.tensor(2.5).as_subclass(Refusing)
    assert collected(DataCollector().collect_all(), [value]) == [2.5]  # type: ignore[list-item]


def test_what_is_traced_has_no_values() -> None:
    collector = DataCollector().collect_all()

    @StepFunction
    def step(x: Tensor) -> Tensor:
        collector.collect(x.sum(), "sum")
        return x * 2

    with collector.attach_to_executor(step):
        make_fx(step)(torch.ones(2))
        torch.func.grad(lambda x: step(x).sum())(torch.ones(2))
        torch.vmap(step)(torch.ones(2, 2))
        with FakeTensorMode():
            step(torch.ones(2))
        step(torch.ones(2))
    assert collector.get_series_values("sum") == [2.0]


def test_an_unknown_series_is_empty() -> None:
    collector = DataCollector()
    assert collector.get_series_values("x") == collector.get_series_steps("x") == []
    assert collector.get_all_series_names() == []
