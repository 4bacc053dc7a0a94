"""The measured costs that come with the package."""

from __future__ import annotations

import json

import pytest

from benchmarks.quantities import OF_PRESETS
from benchmarks.workloads import WORKLOADS
from notebook_probe.quantities import quantities
from notebook_probe.quantities.define.costs import (
    FILE,
    Costs,
    MeasuredCost,
    measured_costs,
    read_costs,
)
from notebook_probe.run.attach.presets import presets

TEXT = json.dumps(
    {
        "machine": "a desk calculator",
        "presets": {"default": {"MLP": {"us": 120.0, "percent": 4.0}, "small GPT": "too small"}},
        "quantities": {},
    }
)


def test_a_cell_is_a_cost_or_the_reason_why_there_is_none() -> None:
    costs = read_costs(TEXT)
    assert costs.machine == "a desk calculator"
    assert costs.presets["default"] == {"MLP": MeasuredCost(120.0, 4.0), "small GPT": "too small"}


def test_in_one_line_only_what_was_measured_is_told() -> None:
    costs = read_costs(TEXT)
    assert costs.of_preset("default") == "MLP 4 % of a step"
    assert costs.of_preset("unknown") == costs.of_quantity("lr") == Costs().of_quantity("lr") == ""


@pytest.mark.parametrize(
    ("percent", "told"),
    [(0.0, "< 0.001 %"), (0.0123, "0.012 %"), (1.0, "1 %"), (9.96, "10 %"), (12345.6, "12346 %")],
)
def test_per_cent_are_told_with_two_figures(percent: float, told: str) -> None:
    assert str(MeasuredCost(1.0, percent)) == told


def test_what_was_measured_is_called_so_still() -> None:
    costs = measured_costs()
    assert set(costs.presets) <= set(presets)
    assert set(costs.quantities) <= set(quantities)
    for rows, measured in ((costs.presets, OF_PRESETS), (costs.quantities, WORKLOADS)):
        assert all(set(row) <= set(measured) for row in rows.values())


def test_every_preset_s_cost_was_measured() -> None:
    assert list(measured_costs().presets) == list(presets), f"see {FILE}"
