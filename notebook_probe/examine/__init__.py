"""Examine a model, a batch and a loss before the first step.

`examine` runs a list of checks on a copy of the model and returns an `Examination`: one `Finding`
for each answer, the worst first, those that found nothing wrong included.
"""

from notebook_probe.examine.findings import Examination, Finding

__all__ = ["Examination", "Finding"]
