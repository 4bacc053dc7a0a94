"""Quantities: pure functions of a module's tensors, by name. They know no store.

What is measured is in ``catalogue``; how a function becomes a quantity in ``define``; what of a
tensor several quantities share in ``reduce``.
"""

from notebook_probe.quantities import catalogue
from notebook_probe.quantities.define.decorator import as_quantity, own_name, quantities, quantity
from notebook_probe.quantities.define.quantity import Quantity
from notebook_probe.quantities.define.reduction import reduction
from notebook_probe.quantities.define.window import Window, window_quantity
from notebook_probe.quantities.reduce.covariance import cov_eigs, covariance
from notebook_probe.quantities.reduce.features import Feature

__all__ = [
    "Feature",
    "Quantity",
    "Window",
    "as_quantity",
    "catalogue",
    "cov_eigs",
    "covariance",
    "own_name",
    "quantities",
    "quantity",
    "reduction",
    "window_quantity",
]
