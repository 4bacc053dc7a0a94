"""Optimizers around others: clipped, of some parameters only, of groups of minibatches.

::

    classes and their arguments ─▶ making ─▶ wrapper ─▶ clip, minibatch
                     names ─▶ which parameters       clipping ─▶ how gradients are clipped
"""

from notebook_probe.experiment.optimizers.clip import ClipOptimizer
from notebook_probe.experiment.optimizers.minibatch import MinibatchOptimizer, num_minibatches

__all__ = ["ClipOptimizer", "MinibatchOptimizer", "num_minibatches"]
