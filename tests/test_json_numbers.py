"""Numbers for JSON: what is sent or recorded is JSON, and numbers that JSON has are unchanged."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
import torch

from notebook_probe.json_numbers import json_number, json_value


@pytest.mark.parametrize("value", [0.1, -0.0, 5, np.float32(0.5), np.int64(3), torch.tensor(2.0)])
def test_a_finite_number_is_a_float(value: Any) -> None:
    found = json_number(value)
    assert type(found) is float
    assert found == float(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, np.float64("nan")])
def test_a_number_that_json_has_not_is_null_or_text(value: float) -> None:
    assert json_number(value) is None
    text = json.dumps(json_value(value), allow_nan=False)
    assert str(float(json.loads(text))) == str(float(value))


@pytest.mark.parametrize("value", [None, True, 3, "nan", [math.nan]])
def test_other_values_stay_as_they_are(value: Any) -> None:
    assert json_value(value) is value
