"""Validations: a pass over data, and one result made of those of its batches.

::

    batches ─▶ targets or a loop of the user's ─▶ online aggregation ─▶ final aggregation ─▶ result
"""

from notebook_probe.experiment.validation.aggregations import (
    mean_dict,
    online_agg,
    reduce_mean,
    reduce_mean_dict,
)
from notebook_probe.experiment.validation.validation import Validation

__all__ = ["Validation", "mean_dict", "online_agg", "reduce_mean", "reduce_mean_dict"]
