"""Comparison of two models operation by operation, to find the first one that differs.

::

    model, batch, loss ─▶ one step on a copy ─▶ operations with hashes ─┐
    other model        ─▶ one step on a copy ─▶ operations with hashes ─┴▶ FirstDifference
"""

from notebook_probe.examine.operations.first_difference import FirstDifference, Place

__all__ = ["FirstDifference", "Place"]
