"""What was set up otherwise, in words."""

from __future__ import annotations

from typing import Any

import pytest

from notebook_probe.compare import differ_in_seed_alone, differences
from notebook_probe.record.format.source import ModuleRow
from tests.compare.made import made

NET = (ModuleRow("", "Net", 30, 0, -1), ModuleRow("bn1", "BatchNorm2d", 4, 4, 0))


@pytest.mark.parametrize(
    ("here", "there", "text"),
    [
        ({"lr": 3e-3}, {"lr": 1e-3}, "lr 0.001, here 0.003"),
        ({"lr": 1, "seed": 3}, {"lr": 1, "seed": 4}, "seed 4, here 3"),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1}}, "a.c not set, here 2"),
        ({"a": [1, 2]}, {"b": "x" * 50}, f"a not set, here [1, 2]; b {'x' * 40}…, here not set"),
        ({"lr": 1}, {"lr": 1}, ""),
        ({"lr": 1}, None, "–"),
        (None, None, "–"),
    ],
)
def test_keys_of_the_config_that_differ(here: Any, there: Any, text: str) -> None:
    runs = [made("r", {"m": [1.0]}, config=one) for one in (here, there)]
    assert differences(runs[0], runs[1]).text == text


@pytest.mark.parametrize(
    ("configs", "alike"),
    [
        ([{"lr": 1, "seed": 1}, {"lr": 1, "seed": 2}, {"lr": 1, "seed": 3}], True),
        ([{"lr": 1, "data": {"random_seed": 1}}, {"lr": 1, "data": {"random_seed": 2}}], True),
        ([{"lr": 1}, {"lr": 1}], True),
        ([{"lr": 1, "seed": 1}, {"lr": 1, "seed": 2}, {"lr": 2, "seed": 3}], False),
        ([{"lr": 1, "seeds_per_row": 1}, {"lr": 1, "seeds_per_row": 2}], False),
        ([{"lr": 1}, None], False),
        ([None, None], False),
    ],
)
def test_runs_that_differ_in_nothing_but_a_seed_are_of_one_setting(
    configs: Any, alike: bool
) -> None:
    runs = [made("r", {"m": [1.0]}, config=one) for one in configs]
    assert differ_in_seed_alone(runs) is alike


@pytest.mark.parametrize(
    ("there", "text"),
    [
        (NET, "–"),
        ((NET[0], ModuleRow("bn1", "GroupNorm", 4, 4, 0)), "GroupNorm, here BatchNorm2d"),
        ((NET[0], ModuleRow("bn1", "BatchNorm2d", 9, 9, 0)), "other sizes at bn1"),
        (NET[:1], "another model: 1 of 2 modules in common"),
        ((*NET, ModuleRow("x", "X", 0, 0, 0)), "another model: 2 of 2 modules in common"),
        ((), "–"),
    ],
)
def test_what_differs_in_the_model(there: tuple[ModuleRow, ...], text: str) -> None:
    a, b = made("a", {"m": [1.0]}), made("b", {"m": [1.0]})
    a.modules, b.modules = NET, there
    assert differences(a, b).text == text
