"""The space and the configurations of a sweep for Ray Tune, which runs them on many machines.

::

    from notebook_probe.experiment.sweep import ray as by_ray

    tune.Tuner(by_ray.trainable(train, sweep), param_space=by_ray.listed(sweep)).fit()
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ray import tune

from notebook_probe.experiment.sweep.child import Function, finished
from notebook_probe.experiment.sweep.configuration import configured
from notebook_probe.experiment.sweep.space import (
    Choice,
    Integers,
    LogUniform,
    Uniform,
    values_of,
)
from notebook_probe.experiment.sweep.sweeps import Sweep

__all__ = ["listed", "param_space", "trainable"]

CHOSEN = "chosen"


def listed(sweep: Sweep) -> dict[str, Any]:
    """Return a ``param_space`` of exactly the sweep's configurations, each tried once."""
    # One grid over whole configurations: a grid for each name would try all combinations.
    return {CHOSEN: tune.grid_search([dict(one.chosen) for one in sweep])}


def param_space(sweep: Sweep) -> dict[str, Any]:
    """Return the space for a search algorithm of Ray's: lists are grids, the rest is drawn.

    Raises
    ------
    TypeError
        A part of it is a distribution that Ray does not know.
    """
    return {path: _domain(path, given) for path, given in sweep.space.items()}


def trainable(function: Function, sweep: Sweep) -> Callable[[Mapping[str, Any]], None]:
    """Return a function for a Tuner: it trains a configuration and reports its numbers.

    Parameters
    ----------
    function : callable
        Same as in `Sweep.run`; ``configuration.folder`` is the folder of the trial.
    sweep : Sweep
        Sweep whose base is used.
    """
    base = dict(sweep.base)

    def train(config: Mapping[str, Any]) -> None:
        one = configured(base, config.get(CHOSEN, config))
        folder = tune.get_context().get_trial_dir()
        outcome = finished(function(replace(one, folder=folder)))
        tune.report({**outcome.result, "sweep_id": one.id})

    return train


def _domain(path: str, given: Any) -> Any:
    if isinstance(given, Uniform):
        return tune.uniform(given.low, given.high)
    if isinstance(given, LogUniform):
        return tune.loguniform(given.low, given.high)
    if isinstance(given, Integers):
        # Ray excludes the upper end.
        return tune.randint(given.low, given.high + 1)
    if isinstance(given, Choice):
        return tune.choice(given.values)
    return tune.grid_search(list(values_of(given, path)))
