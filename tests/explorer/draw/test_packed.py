"""What a function returns as what an ES module is side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import notebook_probe as nbp
from notebook_probe.explorer.draw.packed import packed


def unpacked(values: Mapping[str, Any]) -> Any:
    """What the browser makes of it, in numpy."""
    data, places, buffers = packed(values)
    for place, buffer in zip(places, buffers, strict=True):
        inside = data
        for key in place["path"][:-1]:
            inside = inside[key]
        array = np.frombuffer(buffer, place["dtype"]).reshape(place["shape"])
        inside[place["path"][-1]] = array
    return data


@pytest.mark.parametrize(
    ("dtype", "sent_as"),
    [
        ("float32", "float32"),
        ("float64", "float64"),
        (">f4", "float32"),
        ("float16", "float32"),
        ("int8", "int8"),
        ("uint16", "uint16"),
        ("int32", "int32"),
        ("int64", "float64"),
        ("bool", "uint8"),
    ],
)
def test_arrays_arrive_as_types_that_javascript_has(dtype: str, sent_as: str) -> None:
    values = np.arange(12).reshape(3, 4).T.astype(dtype)
    sent = unpacked({"deep": [{"values": values}], "n": 3})
    found = sent["deep"][0]["values"]
    assert (found.dtype.name, sent["n"]) == (sent_as, 3)
    np.testing.assert_array_equal(found, values)


def test_single_numbers_of_numpy_are_numbers_and_json_has_no_nan() -> None:
    values = {"a": np.float32(0.5), "b": np.array(3), "c": (np.bool_(True), None, float("nan"))}
    assert unpacked(values) == {"a": 0.5, "b": 3, "c": [True, None, None]}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            {"a": {"b": [object]}},
            r"data\['a'\]\['b'\]\[0\] is type <class 'object'>; numbers, texts",
        ),
        ({"a": np.array(["x"])}, r"data\['a'\] is an array of <U1; numbers"),
        ({"a": {1: 2}}, r"data\['a'\] has the key 1; the keys of a dict are texts"),
        ({"a": np.zeros(2, complex)}, "an array of complex128"),
    ],
)
def test_what_cannot_be_sent_is_named_with_its_place(values: Any, said: str) -> None:
    with pytest.raises(nbp.ViewError, match=said):
        packed(values)
