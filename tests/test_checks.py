"""Numbers that users give: numpy's are numbers, booleans and text are not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from notebook_probe.checks import is_number, is_whole, positive_number, whole_number
from notebook_probe.errors import QuantityError


@pytest.mark.parametrize("given", [3, np.int64(3), np.uint8(3)])
def test_a_whole_number_is_given_back_as_pythons_own(given: object) -> None:
    assert is_whole(given)
    assert is_number(given)
    assert type(whole_number("n", given)) is int


@pytest.mark.parametrize("given", [True, np.True_, "3", None, 3.0, math.nan, [3]])
def test_what_is_no_whole_number_is_refused_with_what_was_given(given: object) -> None:
    assert not is_whole(given)
    with pytest.raises(ValueError, match=r"^n=.*; allowed: a whole number from 0$") as refused:
        whole_number("n", given)
    assert f"n={given!r}" in str(refused.value)


@pytest.mark.parametrize(("given", "is_allowed"), [(0, False), (1, True), (9, True), (10, False)])
def test_bounds_are_allowed_and_named_in_the_callers_error(given: int, is_allowed: bool) -> None:
    if is_allowed:
        assert whole_number("n", given, 1, 9) == given
    else:
        with pytest.raises(QuantityError, match=f"n={given}; allowed: a whole number from 1 to 9"):
            whole_number("n", given, 1, 9, QuantityError)


@pytest.mark.parametrize("given", [2, 0.5, np.float32(0.5)])
def test_a_positive_number_is_given_back_as_a_float(given: float) -> None:
    assert type(positive_number("clip", given)) is float


@pytest.mark.parametrize("given", [0, -1.0, math.inf, math.nan, True, "1", None])
def test_zero_infinity_and_what_is_no_number_are_not_positive(given: object) -> None:
    with pytest.raises(ValueError, match="allowed: a positive number"):
        positive_number("clip", given)
