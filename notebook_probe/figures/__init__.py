"""Static pictures of a run or a record by matplotlib: `Figure` and Agg, never pyplot."""

from notebook_probe.figures.compared import compared
from notebook_probe.figures.graphs.data import dataset_graph
from notebook_probe.figures.graphs.network import graph
from notebook_probe.figures.heat import heat
from notebook_probe.figures.histograms import histograms
from notebook_probe.figures.image import image
from notebook_probe.figures.landscape.picture import landscape
from notebook_probe.figures.lines import LineOptions, lines
from notebook_probe.figures.overview import overview
from notebook_probe.figures.parallel.picture import parallel
from notebook_probe.figures.ratio import ratio
from notebook_probe.figures.vector import vector
from notebook_probe.figures.vectors import vectors

__all__ = [
    "LineOptions",
    "compared",
    "dataset_graph",
    "graph",
    "heat",
    "histograms",
    "image",
    "landscape",
    "lines",
    "overview",
    "parallel",
    "ratio",
    "vector",
    "vectors",
]
