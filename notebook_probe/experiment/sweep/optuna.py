"""A sweep's space and configurations for Optuna, which chooses what is tried next.

::

    from notebook_probe.experiment.sweep import optuna as by_optuna

    study = optuna.create_study(direction="maximize")
    by_optuna.enqueue(study, sweep)
    study.optimize(by_optuna.objective(train, sweep, "accuracy"), n_trials=50)
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from optuna import Study, Trial

from notebook_probe.experiment.sweep.child import Function, finished
from notebook_probe.experiment.sweep.configuration import Configuration, configured
from notebook_probe.experiment.sweep.space import Integers, LogUniform, Uniform, values_of
from notebook_probe.experiment.sweep.sweeps import FOLDER, Sweep

__all__ = ["configuration", "enqueue", "objective"]

PLAIN = (bool, int, float, str, type(None))
"""Types of choices that Optuna stores; others are passed as places in their list."""


def configuration(trial: Trial, sweep: Sweep) -> Configuration:
    """Return the configuration of a trial, with values that Optuna suggests.

    Raises
    ------
    TypeError
        A part of the space is a distribution that Optuna does not know.
    """
    chosen = {path: _suggested(trial, path, given) for path, given in sweep.space.items()}
    return configured(sweep.base, chosen)


def objective(
    function: Function, sweep: Sweep, result: str = "value", folder: str | os.PathLike[str] = FOLDER
) -> Callable[[Trial], float]:
    """Return the objective of a study: one number of what the function returns.

    Parameters
    ----------
    function : callable
        Same as in `Sweep.run`; each trial has a folder by the id of its configuration.
    sweep : Sweep
        Sweep whose space and base are used.
    result : str
        The name of the number; ``"value"`` where the function returns one number alone.
    folder : path
    """

    def call(trial: Trial) -> float:
        one = configuration(trial, sweep)
        own = Path(folder).absolute() / one.id
        own.mkdir(parents=True, exist_ok=True)
        trial.set_user_attr("sweep_id", one.id)
        return float(finished(function(replace(one, folder=str(own)))).result[result])

    return call


def enqueue(study: Study, sweep: Sweep) -> None:
    """Add the configurations of the sweep to a study, to be tried first and in their order."""
    for one in sweep:
        told = {path: _as_choice(sweep.space[path], value) for path, value in one.chosen.items()}
        study.enqueue_trial(told, user_attrs={"sweep_id": one.id})


def _suggested(trial: Trial, path: str, given: Any) -> Any:
    if isinstance(given, Uniform | LogUniform):
        log = isinstance(given, LogUniform)
        return trial.suggest_float(path, given.low, given.high, log=log)
    if isinstance(given, Integers):
        return trial.suggest_int(path, given.low, given.high)
    values = values_of(given, path)
    if _are_plain(values):
        return trial.suggest_categorical(path, values)
    return values[trial.suggest_categorical(path, range(len(values)))]


def _as_choice(given: Any, value: Any) -> Any:
    """Return a value as optuna has it: by its index where it is no plain value."""
    if isinstance(given, Uniform | LogUniform | Integers):
        return value
    values = values_of(given, "")
    return value if _are_plain(values) else values.index(value)


def _are_plain(values: tuple[Any, ...]) -> bool:
    return all(isinstance(one, PLAIN) for one in values)
