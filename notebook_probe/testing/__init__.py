"""Conformance suites: tests that every extension must pass, inherited by the tests of yours.

>>> import notebook_probe as nbp
>>> @nbp.quantity(units="1")
... def largest_share(output):
...     \"\"\"Share of the largest activation, ``max |y| / sum |y|``.\"\"\"
...     return output.abs().amax() / output.abs().sum()
>>> class TestLargestShare(QuantitySuite):  # in a file that pytest collects
...     quantities = (largest_share,)
"""

from typing import TYPE_CHECKING, Any

from notebook_probe.testing.cases import CASES, Case
from notebook_probe.testing.quantities import QuantitySuite
from notebook_probe.testing.rules import RuleSuite
from notebook_probe.testing.schedules import ScheduleSuite

if TYPE_CHECKING:
    from notebook_probe.testing.views import ViewSuite

__all__ = ["CASES", "Case", "QuantitySuite", "RuleSuite", "ScheduleSuite", "ViewSuite"]


def __getattr__(name: str) -> Any:
    """`ViewSuite` alone needs the packages of the panel."""
    if name != "ViewSuite":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from notebook_probe.testing.views import ViewSuite

    return ViewSuite
