"""Names that no compared run has: an error with near matches, in every function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from notebook_probe.compare import align, differences, group, parting, ratio
from notebook_probe.errors import UnknownNameError
from tests.compare.made import Made, made


@pytest.fixture
def runs() -> list[Made]:
    return [made(name, {"conv1": [1.0, 2.0]}, logged={"loss": [1.0, 2.0]}) for name in "ab"]


@pytest.mark.parametrize(
    "compared",
    [
        lambda this, other: parting(this, other, "nrom"),
        lambda this, other: ratio(this, [other], "nrom"),
        lambda this, other: group([this, other], "conv1", "nrom"),
    ],
)
def test_a_quantity_that_no_run_has_is_refused_with_near_matches(
    runs: list[Made], compared: Callable[..., object]
) -> None:
    with pytest.raises(UnknownNameError, match="no quantity 'nrom' is recorded; close: 'norm'"):
        compared(*runs)


def test_a_module_that_no_run_has_is_refused_with_near_matches(runs: list[Made]) -> None:
    with pytest.raises(UnknownNameError, match=r"no norm of module 'cnov1' .*; close: 'conv1'"):
        group(runs, "cnov1", "norm")
    assert group([runs[0], made("c", {"head": [1.0]})], "conv1", "norm").n.max() == 1


@pytest.mark.parametrize("wrong", [3, None, {"a": 1}])
@pytest.mark.parametrize(
    "compared",
    [
        lambda this, other: parting(this, [other], "norm"),
        lambda this, other: parting(other, this, "norm"),
        lambda this, other: ratio(this, other, "norm"),
        lambda this, other: group([this, other], "conv1", "norm"),
        lambda this, other: align(this, other),
        lambda this, other: differences(other, this),
    ],
)
def test_what_is_no_run_is_refused(
    runs: list[Made], compared: Callable[..., object], wrong: Any
) -> None:
    with pytest.raises(TypeError, match=r"a run is expected, as nbp.watch and nbp.open_run return"):
        compared(runs[0], wrong)
