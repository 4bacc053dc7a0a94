"""Quantities: pure functions of a module's tensors; one file per family."""

from notebook_probe.quantities import (
    activity,
    batchnorm,
    changes,
    channels,
    histograms,
    moments,
    norms,
    peaks,
    precision,
    ranks,
    scales,
    spectra,
    updates,
    weight_spectra,
)
from notebook_probe.quantities.base import Quantity, as_quantity, quantities, quantity
from notebook_probe.quantities.features import Feature
from notebook_probe.quantities.window import Window, window_quantity

__all__ = [
    "Feature",
    "Quantity",
    "Window",
    "activity",
    "as_quantity",
    "batchnorm",
    "changes",
    "channels",
    "histograms",
    "moments",
    "norms",
    "peaks",
    "precision",
    "quantities",
    "quantity",
    "ranks",
    "scales",
    "spectra",
    "updates",
    "weight_spectra",
    "window_quantity",
]
