"""Examine a model, a batch and a loss before the first step.

`examine` runs a list of checks on a copy of the model and returns an `Examination`: one `Finding`
for each check, the worst first, including checks that found no problem.
"""

from notebook_probe.examine.findings import Examination, Finding

__all__ = ["Examination", "Finding"]
