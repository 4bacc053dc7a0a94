"""ExperimentResults of an experiment: what `train_from_params` and `test_from_params` return."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["ExperimentResults"]


class ExperimentResults(NamedTuple):
    """Results of the validations of each model, and the ids of what was saved.

    Attributes
    ----------
    results : dict
        Model's ``prefix`` -> validation -> its result. For a training, these are the last results;
        a model that was not validated has none.
    ids : dict
        Model's ``prefix`` -> ids, such as ``"3f2c…:5"`` of unit 5.

    Examples
    --------
    >>> found = ExperimentResults({"model_0": {"held_out": {"accuracy": 0.91}}}, {"model_0": []})
    >>> results, ids = found
    >>> results["model_0"]["held_out"]
    {'accuracy': 0.91}
    """

    results: dict[str, dict[str, dict[str, Any]]]
    ids: dict[str, list[str]]
