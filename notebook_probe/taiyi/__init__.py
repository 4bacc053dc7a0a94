"""Taiyi's names, for a loop that was written for it: a thin adapter on top of `watch`.

>>> from notebook_probe.taiyi import Monitor, Visualization
>>> monitor = Monitor(model, {nn.Linear: [["InputSndNorm", "linear(5,0)"]]})  # doctest: +SKIP
"""

from notebook_probe.quantities import cov_eigs as cal_eig
from notebook_probe.quantities import covariance as cal_cov_matrix
from notebook_probe.taiyi.monitor import Monitor
from notebook_probe.taiyi.visualization import Visualization

__all__ = ["Monitor", "Visualization", "cal_cov_matrix", "cal_eig"]
