"""Comparing what a run recorded with what a `Witness` saw."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
import torch
import xarray as xr

__all__ = ["named", "near", "recorded", "recorded_at"]


def recorded(data: xr.Dataset, quantity: str, step: int) -> dict[str, float]:
    """Place -> value, where there is one."""
    values = data[quantity].sel(step=step).to_series().dropna()
    return {str(place): float(value) for place, value in values.items()}


def recorded_at(
    data: xr.Dataset, quantity: str, step: int, places: Mapping[str, float]
) -> dict[str, float]:
    """Place -> value, NaN where there is none."""
    found = recorded(data, quantity, step)
    return {place: found.get(place, math.nan) for place in places}


def named(expected: Mapping[str, float]) -> dict[str, float]:
    """The root by the name that it has in a record."""
    return {path or "(root)": value for path, value in expected.items()}


def near(wanted: Mapping[Any, float]) -> object:
    """As near as a record in float32 can be; a masked score may lie beyond its range.

    Where a gap is wanted there must be one.
    """
    kept = torch.tensor(list(wanted.values()), dtype=torch.float64).float().tolist()
    return pytest.approx(dict(zip(wanted, kept, strict=True)), rel=2e-5, abs=1e-7, nan_ok=True)
