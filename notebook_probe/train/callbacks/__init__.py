"""Common callbacks of loops: `Loop.add` takes each of these."""

from notebook_probe.train.callbacks.accumulation import AccumulateByEpoch
from notebook_probe.train.callbacks.early_stopping import EarlyStopping
from notebook_probe.train.callbacks.learning_rates import LearningRates, find_learning_rate
from notebook_probe.train.callbacks.weight_average import WeightAverage

__all__ = [
    "AccumulateByEpoch",
    "EarlyStopping",
    "LearningRates",
    "WeightAverage",
    "find_learning_rate",
]
