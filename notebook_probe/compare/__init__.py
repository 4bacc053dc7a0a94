"""Runs beside each other: put on one axis, how far they are apart, where they part, as a group.

Of `Source` alone: numpy and xarray, neither torch nor Jupyter.
"""

from notebook_probe.compare.alignment import Alignment, align
from notebook_probe.compare.axes import AXES, RunAxis, logged_names
from notebook_probe.compare.deviation import told
from notebook_probe.compare.parting import parting
from notebook_probe.compare.partings import Parting, Partings
from notebook_probe.compare.ratio_grid import Ratio, RatioGrid, ratio

__all__ = [
    "AXES",
    "Alignment",
    "Parting",
    "Partings",
    "Ratio",
    "RatioGrid",
    "RunAxis",
    "align",
    "logged_names",
    "parting",
    "ratio",
    "told",
]
