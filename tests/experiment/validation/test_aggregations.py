"""Aggregations, against cases made by hand and against numpy in float64."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from notebook_probe.experiment.validation import (
    mean_dict,
    online_agg,
    reduce_mean,
    reduce_mean_dict,
)
from notebook_probe.experiment.validation.aggregations import append

NUMBERS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


def over(aggregate: Any, results: list[Any]) -> Any:
    agg = None
    for i, result in enumerate(results):
        agg = aggregate(agg, result, i)
    return agg


def test_a_running_mean_by_hand() -> None:
    assert over(reduce_mean, [2.0, 4.0, 9.0]) == 5.0
    assert reduce_mean(5.0, 9.0, 3) == 5.0 * 3 / 4 + 9.0 / 4


@given(NUMBERS)
def test_the_running_mean_is_the_mean(values: list[float]) -> None:
    expected = float(np.mean(np.array(values)))
    tolerance = 1e-12 * max(1.0, *map(abs, values))
    assert over(reduce_mean, values) == pytest.approx(expected, rel=1e-12, abs=tolerance)
    offline = mean_dict(over(append, [{"a": value} for value in values]))
    online = over(reduce_mean_dict, [{"a": value} for value in values])
    assert online["a"] == pytest.approx(offline["a"], rel=1e-12, abs=tolerance)


@given(arrays.arrays(np.float64, (7, 2, 3), elements=st.floats(-1e3, 1e3)))
def test_arrays_keep_their_shape_in_a_running_mean(values: Any) -> None:
    found = over(reduce_mean, [torch.tensor(one) for one in values])
    assert np.allclose(found, values.mean(0), rtol=1e-12, atol=1e-9)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6))
def test_the_mean_is_over_all_elements_of_batches_of_any_size(sizes: list[int]) -> None:
    values = [np.arange(size, dtype=np.float32) + 10 * i for i, size in enumerate(sizes)]
    found = mean_dict([{"a": torch.tensor(one)} for one in values])
    assert found["a"] == pytest.approx(np.concatenate(values).astype(np.float64).mean())


def test_the_mean_of_lists_of_batch_means() -> None:
    lists = over(online_agg, [{"a": [1.0, 3.0], "b": 1}, {"a": torch.tensor([8.0]), "b": 0}])
    assert lists == {"a": [2.0, 8.0], "b": [1.0, 0.0]}
    assert mean_dict(lists) == {"a": 5.0, "b": 0.5}


def test_of_the_step_of_a_validation_least_and_largest_are_told() -> None:
    results = [{"validation_step": step, "loss": float(step)} for step in (3, 4, 8)]
    assert mean_dict(results) == {"validation_step": [3, 8], "loss": 5.0}


def test_half_precision_and_whole_numbers_count_in_float64() -> None:
    ones = [torch.tensor(60000.0, dtype=torch.float16)] * 3
    assert over(reduce_mean, ones) == pytest.approx(60000.0)  # two of them are too many for float16
    assert mean_dict([{"a": one} for one in ones])["a"] == 60000.0
    assert mean_dict([{"hit": torch.tensor([True, False, False, True])}]) == {"hit": 0.5}
    half = torch.ones(2, dtype=torch.bfloat16)
    assert online_agg(None, {"a": half}, 0) == {"a": [1.0]}


def test_what_is_not_a_number_stays_so() -> None:
    nan = float("nan")
    assert np.isnan(over(reduce_mean, [1.0, nan, 2.0]))
    assert np.isnan(mean_dict([{"a": nan}, {"a": 1.0}])["a"])


def test_the_mean_of_nothing_is_an_error() -> None:
    nothing: Any
    for nothing in ([], {}):
        with pytest.raises(ValueError, match="no results"):
            mean_dict(nothing)


def test_gradients_do_not_matter() -> None:
    assert reduce_mean(None, torch.ones(1, requires_grad=True), 0) == np.ones(1)


def test_a_batch_with_other_keys_is_named() -> None:
    with pytest.raises(ValueError, match=r"batch 1 has 'loss', and those before it 'acc', 'loss'"):
        reduce_mean_dict({"acc": 1.0, "loss": 1.0}, {"loss": 4.0}, 1)
    with pytest.raises(ValueError, match="batch 2 has 'new', and those before it 'loss'"):
        online_agg({"loss": [1.0]}, {"new": 4.0}, 2)
    with pytest.raises(ValueError, match="mean_dict: batch 1 has 'acc', and the first 'loss'"):
        mean_dict([{"loss": 1.0}, {"acc": 1.0}])
