"""Comparison of runs: alignment on one axis, divergence, and runs as a group.

It reads `Source` only, with numpy and xarray; it imports neither torch nor Jupyter.
"""

from notebook_probe.compare.alignment import Alignment, align
from notebook_probe.compare.axes import AXES, RunAxis, logged_names
from notebook_probe.compare.band import Band
from notebook_probe.compare.deviation import told
from notebook_probe.compare.differences import (
    ConfigDifference,
    Differences,
    differ_in_seed_alone,
    differences,
)
from notebook_probe.compare.group import group
from notebook_probe.compare.line_axes import EpochAxis
from notebook_probe.compare.parting import PartingSearch, parting
from notebook_probe.compare.partings import Parting, Partings
from notebook_probe.compare.ratio_grid import Ratio, RatioGrid, ratio

__all__ = [
    "AXES",
    "Alignment",
    "Band",
    "ConfigDifference",
    "Differences",
    "EpochAxis",
    "Parting",
    "PartingSearch",
    "Partings",
    "Ratio",
    "RatioGrid",
    "RunAxis",
    "align",
    "differ_in_seed_alone",
    "differences",
    "group",
    "logged_names",
    "parting",
    "ratio",
    "told",
]
