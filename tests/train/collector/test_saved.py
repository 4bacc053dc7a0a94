"""The state of a collector: what was interrupted goes on as if it never had been."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe import DataCollector
from tests.train.collector.loops import Telling, collected, sgd, train

values = st.lists(st.floats(width=64, allow_nan=False), max_size=60)


def through_a_file(state: Any) -> Any:
    torch.save(state, file := BytesIO())
    file.seek(0)
    return torch.load(file, weights_only=True)


@pytest.mark.slow
@given(values, values, st.integers(2, 9))
def test_resumed_is_uninterrupted(before: list[float], after: list[float], n: int) -> None:
    interrupted = DataCollector().keep_n_points(n)
    collected(interrupted, before)
    resumed = DataCollector().keep_n_points(n)
    resumed.load_state_dict(through_a_file(interrupted.state_dict()))
    whole = DataCollector().keep_n_points(n)
    assert collected(resumed, after) == collected(whole, before + after)


def test_the_steps_of_a_module_go_on_where_they_ended() -> None:
    first = DataCollector().every_n_steps(2)
    model = Telling(first)
    first.attach_to_executor(model)
    train(model, sgd(model), [1.0, 2.0, 3.0])
    second = DataCollector()  # the state brings the policy
    second.load_state_dict(through_a_file(first.state_dict()))
    model = Telling(second)
    second.attach_to_executor(model)
    train(model, sgd(model), [4.0, 5.0])
    assert second.get_series("input") == ([0, 2, 4], [1.0, 3.0, 5.0])


def test_a_state_without_anything_leaves_the_policy_as_it_is() -> None:
    collector = DataCollector().every_n_steps(2)
    model = Telling(collector)
    collector.attach_to_executor(model)
    collector.load_state_dict(through_a_file(DataCollector().state_dict()))
    train(model, sgd(model), [1.0, 2.0, 3.0])
    assert collector.get_series_values("input") == [1.0, 3.0]


def test_a_state_of_another_policy_is_refused() -> None:
    kept = DataCollector().keep_n_points(5)
    collected(kept, [1.0])
    message = r"kept by keep_n_points\(5\), but the collector has every_n_steps\(2\); allowed: the"
    with pytest.raises(ValueError, match=message):
        DataCollector().every_n_steps(2).load_state_dict(kept.state_dict())


@pytest.mark.parametrize(
    "state",
    [
        None,
        {},
        {"policy": {"keep_some": 3}, "next_step": 0, "series": {}},
        {"policy": {"keep_n_points": 1}, "next_step": 0, "series": {}},
        {"policy": {}, "next_step": 0, "series": {"a": {"count": 1, "stride": 1}}},
        {
            "policy": {"collect_all": ""},
            "next_step": 2,
            "series": {
                "a": {
                    "count": 1,
                    "stride": 1,
                    "steps": torch.tensor([0, 1]),
                    "values": torch.tensor([1.0], dtype=torch.float64),
                }
            },
        },
        {
            "policy": {"collect_all": ""},
            "next_step": 1,
            "series": {
                "a": {
                    "count": 1,
                    "stride": 1,
                    "steps": torch.tensor([0]),
                    "values": torch.tensor([1.0]),
                }
            },
        },
    ],
)
def test_anything_but_a_state_is_refused_and_changes_nothing(state: Any) -> None:
    collector = DataCollector().collect_all()
    collected(collector, [1.0])
    with pytest.raises(ValueError, match=r"load_state_dict\(\w+\): no state of a DataCollector \("):
        collector.load_state_dict(state)
    assert collector.get_series_values("values") == [1.0]
