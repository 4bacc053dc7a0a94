"""Quantities: pure functions of a module's tensors, by name. They import no store.

``catalogue`` has the quantities, ``define`` makes a quantity of a function, and ``reduce`` has the
reductions of a tensor that several quantities share.
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
