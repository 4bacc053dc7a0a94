"""What may be asked of a landscape, and what each mistake is answered by."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.summary.landscape.settings import LandscapeSettings

of = LandscapeSettings.of


def test_by_default_nineteen_snapshots_and_both_landscapes() -> None:
    found = of({})
    assert found == LandscapeSettings()
    assert found.as_dict() == {
        "landscape_size": 40,
        "unit": "step",
        "num_samples": 128,
        "create_landscape": {"train": True, "result": True},
        "intervals": [[*range(1, 10)], [*range(10, 20)]],
        "method": "svd",
        "normalise": "filter",
    }
    assert found.units == tuple(range(1, 20))


def test_what_is_not_given_is_as_by_default_inside_a_dict_too() -> None:
    found = of({"create_landscape": {"train": False}, "landscape_size": 256})
    assert (found.create_train, found.create_result, found.landscape_size) == (False, True, 256)


@given(
    st.integers(3, 256),
    st.sampled_from(["step", "epoch"]),
    st.lists(
        st.lists(st.integers(1, 99), min_size=3, unique=True).map(sorted), min_size=1, max_size=3
    ),
)
def test_what_is_read_is_given_again(size: int, unit: str, intervals: list[list[int]]) -> None:
    found = of({"landscape_size": size, "unit": unit, "intervals": intervals})
    assert of(found.as_dict()) == found
    assert found.units == tuple(sorted(set().union(*intervals)))


def test_settings_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        of({}).unit = "epoch"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("given", "error", "why"),
    [
        (True, TypeError, "a dict or None is expected"),
        ({"landscape_sise": 3}, ValueError, "close: 'landscape_size'"),
        ({3: 3}, TypeError, "3 is no name"),
        ({"landscape_size": 2}, ValueError, "allowed: 3 to 256"),
        ({"landscape_size": 257}, ValueError, "allowed: 3 to 256"),
        ({"landscape_size": True}, TypeError, "a whole number is expected"),
        ({"landscape_size": 40.0}, TypeError, "a whole number is expected"),
        ({"unit": "batch"}, ValueError, "'step' or 'epoch'"),
        ({"unit": 1}, TypeError, "'step' or 'epoch'"),
        ({"num_samples": 0}, ValueError, "allowed: from 1"),
        ({"num_samples": None}, TypeError, "a whole number"),
        ({"create_landscape": True}, TypeError, "a dict of 'train' and 'result'"),
        ({"create_landscape": {"trian": True}}, ValueError, "close: 'train'"),
        ({"create_landscape": {"train": 1}}, TypeError, "True or False"),
        ({"intervals": "1"}, TypeError, "a list of lists"),
        ({"intervals": []}, ValueError, "one interval or more"),
        ({"intervals": [1, 2, 3]}, TypeError, r"intervals\[0\]=1"),
        ({"intervals": [[1, 2]]}, ValueError, "3 numbers or more"),
        ({"intervals": [[1, 2, 2]]}, ValueError, "above the one before"),
        ({"intervals": [[3, 2, 1]]}, ValueError, "above the one before"),
        ({"intervals": [[0, 1, 2]]}, ValueError, r"intervals\[0\]\[0\]=0; allowed: from 1"),
        ({"intervals": [[1, 2, 3.0]]}, TypeError, r"intervals\[0\]\[2\]=3.0"),
        ({"method": "pca"}, ValueError, "'svd' or 'mindspore'"),
        ({"normalise": "layer"}, ValueError, "'filter' or 'tensor'"),
    ],
)
def test_a_mistake_is_answered_by_what_is_allowed(
    given: Any, error: type[Exception], why: str
) -> None:
    with pytest.raises(error, match=why):
        of(given)
