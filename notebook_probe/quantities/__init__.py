"""Quantities: pure functions of a module's tensors; one file per family.

Called, the package gives the table of them all: ``nbp.quantities("overflow")``.
"""

import sys
from types import ModuleType

from notebook_probe.quantities import (
    activity,
    agreement,
    attention,
    batch,
    batchnorm,
    changes,
    channels,
    classification,
    curvature,
    drift,
    forgetting,
    gains,
    gradients,
    histograms,
    loss,
    moments,
    noise,
    norms,
    optimizer,
    outliers,
    path,
    peaks,
    precision,
    predictions,
    quantiles,
    questions,
    ranks,
    regular,
    representations,
    residual,
    routing,
    sample_losses,
    saturated,
    scales,
    slices,
    spectra,
    table,
    timing,
    updates,
    weight_spectra,
)
from notebook_probe.quantities.base import as_quantity, quantities, quantity
from notebook_probe.quantities.definition import Quantity
from notebook_probe.quantities.features import Feature
from notebook_probe.quantities.window import Window, window_quantity

__all__ = [
    "Feature",
    "Quantity",
    "Window",
    "activity",
    "agreement",
    "as_quantity",
    "attention",
    "batch",
    "batchnorm",
    "changes",
    "channels",
    "classification",
    "curvature",
    "drift",
    "forgetting",
    "gains",
    "gradients",
    "histograms",
    "loss",
    "moments",
    "noise",
    "norms",
    "optimizer",
    "outliers",
    "path",
    "peaks",
    "precision",
    "predictions",
    "quantiles",
    "quantities",
    "quantity",
    "questions",
    "ranks",
    "regular",
    "representations",
    "residual",
    "routing",
    "sample_losses",
    "saturated",
    "scales",
    "slices",
    "spectra",
    "table",
    "timing",
    "updates",
    "weight_spectra",
    "window_quantity",
]


class _Callable(ModuleType):
    """``nbp.quantities`` is this package, and what one asks of it first is the table."""

    __call__ = staticmethod(table.quantities)


sys.modules[__name__].__class__ = _Callable
