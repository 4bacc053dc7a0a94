"""Every built-in quantity passes the suite that others inherit; the suite finds faults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest
import torch
from torch import Tensor, nn

import notebook_probe as nbp
from notebook_probe.quantities import Quantity
from notebook_probe.quantities.table import built_in
from notebook_probe.testing import CASES, Case, QuantitySuite

COSTLY = tuple(q for q in built_in() if q.cost in ("forward", "backward"))
ABSENT = () if torch.cuda.is_available() else ("device_power",)
"""Quantities that give no number on this machine."""


@pytest.mark.stories
class TestBuiltIn(QuantitySuite):
    quantities = tuple(q for q in built_in() if q not in COSTLY and q.name not in ABSENT)


class TestBuiltInOnOneModel(QuantitySuite):
    """What can be seen of the same on attention alone, in a tenth of the time."""

    quantities = tuple(q for q in built_in() if q not in COSTLY)
    cases: ClassVar = {"attention": CASES["attention"]}
    steps = 3
    test_it_gives_a_number_somewhere = None  # type: ignore[assignment]  # some need other layers


@pytest.mark.stories
class TestWithPassesOfTheirOwn(QuantitySuite):
    quantities = COSTLY
    cases: ClassVar = {"attention": CASES["attention"]}
    places = ("", "layer.self_attn")
    steps = 4


class Dropping(QuantitySuite):
    """The suite, on the least model in which faults show."""

    cases: ClassVar = {
        "dropping": Case(lambda: nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.5)), (4, 4))
    }
    steps = 3


def suite(*given: Quantity | Callable[..., Any]) -> QuantitySuite:
    kind = type("Given", (Dropping,), {"quantities": given})
    found = kind()
    assert isinstance(found, QuantitySuite)
    return found


def plain(output: Tensor) -> Tensor:
    """Mean of the output, ``mean(y)``."""
    return output.mean()


def test_a_plain_function_passes() -> None:
    passing = suite(plain)
    for name in dir(passing):
        if name.startswith("test_"):
            getattr(passing, name)()


def test_a_quantity_that_says_nothing_is_found() -> None:
    def silent(output: Tensor) -> Tensor:
        return output.mean()

    with pytest.raises(AssertionError, match="silent has no docstring"):
        suite(silent).test_it_says_what_it_is()


def test_one_that_raises_is_found_with_its_place_and_error() -> None:
    def picky(output: Tensor) -> Tensor:
        if not output.isfinite().all():
            raise ValueError("not finite")
        return output.mean()

    suite(picky).test_it_raises_nowhere()
    with pytest.raises(AssertionError, match=r"picky at '0' of dropping: .*not finite"):
        suite(picky).test_no_unusual_number_makes_it_raise()


def test_one_that_draws_random_numbers_passes_as_training_does_not_see_them() -> None:
    def rolling(output: Tensor) -> Tensor:
        """A random number, ``u``."""
        return output.mean() + torch.rand(())

    suite(rolling).test_training_is_the_same_with_it_bit_for_bit()


def test_one_that_writes_into_its_tensor_is_found() -> None:
    def zeroing(grad: Tensor) -> Tensor:
        return grad.mul_(2.0).sum()

    with pytest.raises(AssertionError, match=r"of dropping: .* changed a tensor in place"):
        suite(zeroing).test_it_raises_nowhere()
    suite(zeroing).test_training_is_the_same_with_it_bit_for_bit()


def test_one_that_keeps_what_it_was_given_is_found() -> None:
    kept: list[Tensor] = []

    def hoarding(output: Tensor) -> float:
        kept.append(output)
        return 0.0

    with pytest.raises(AssertionError):
        suite(hoarding).test_it_keeps_no_activation_alive()


def test_one_that_never_has_a_value_is_found() -> None:
    @nbp.window_quantity(name="test_conformance_never")
    class Never:
        """Nothing, ``{}``."""

        def reset(self) -> None: ...

        def update(self, output: Tensor) -> None: ...

        def compute(self) -> None:
            return None

    with pytest.raises(AssertionError, match=r"test_conformance_never.* gave no number"):
        suite(Never).test_it_gives_a_number_somewhere()


def test_a_suite_of_nothing_says_so() -> None:
    with pytest.raises(AssertionError, match=r"Given\.quantities names none"):
        suite().test_it_says_what_it_is()
