"""Parameters of tests, one for each model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from notebook_probe.errors import ParamError
from notebook_probe.experiment.params.base import read
from notebook_probe.experiment.params.sections import (
    LoadParams,
    ModelParams,
    SaveParams,
    ValidationParams,
    read_validations,
)
from notebook_probe.experiment.params.several import spread

__all__ = ["TestParams", "read_tests"]


@dataclass(frozen=True)
class TestParams:
    """All parameters of the test of one model."""

    __test__ = False  # pytest would collect it

    prefix: str
    load: LoadParams
    model: ModelParams
    validation: Mapping[str, ValidationParams]
    save: SaveParams | None


def read_tests(**given: Any) -> tuple[TestParams, ...]:
    """Parse one for each model, from ``load_params=`` and so on; a list has one for each.

    Raises
    ------
    UnknownNameError, ParamError
        Something in a dict; lists of different lengths; models of one name.
    """
    several = tuple(_one(each, i) for i, each in enumerate(spread(given)))
    twice = [prefix for prefix, n in Counter(one.prefix for one in several).items() if n > 1]
    if twice:
        raise ParamError(f"model_params['prefix']: {twice} more than once; each has its own")
    return several


def _one(given: Mapping[str, Any], i: int) -> TestParams:
    model = read(ModelParams, given["model_params"], "model_params")
    load = read(LoadParams, given["load_params"], "load_params")
    if not load.do_restore:
        raise ParamError("load_params['do_restore']=False: a test needs a model that was loaded")
    validation = read_validations(given["validation_params"], "validation_params")
    if not validation:
        raise ParamError("validation_params: nothing to test by; one validation at least")
    save = given.get("save_params")
    return TestParams(
        model.prefix or f"model_{i}",
        load,
        model,
        validation,
        None if save is None else read(SaveParams, save, "save_params"),
    )
