"""Conformance suites: what holds for every extension, to be inherited by the tests of yours.

>>> import notebook_probe as nbp
>>> @nbp.quantity(units="1")
... def largest_share(output):
...     \"\"\"Share of the largest activation, ``max |y| / sum |y|``.\"\"\"
...     return output.abs().amax() / output.abs().sum()
>>> class TestLargestShare(QuantitySuite):  # in a file that pytest collects
...     quantities = (largest_share,)
"""

from notebook_probe.testing.cases import CASES, Case
from notebook_probe.testing.quantities import QuantitySuite
from notebook_probe.testing.rules import RuleSuite
from notebook_probe.testing.schedules import ScheduleSuite

__all__ = ["CASES", "Case", "QuantitySuite", "RuleSuite", "ScheduleSuite"]
