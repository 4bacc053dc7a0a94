"""The parameters of one or more models: what is given as a list is for each, the rest for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from notebook_probe.errors import ParamError
from notebook_probe.experiment.params.base import read
from notebook_probe.experiment.params.sections import (
    LearningRateParams,
    LoadParams,
    LossParams,
    ModelParams,
    OptimizerParams,
    SaveParams,
    TrainParams,
    ValidationParams,
    read_validations,
)

__all__ = ["Params", "read_all", "spread"]


@dataclass(frozen=True)
class Params:
    """All parameters of one model."""

    prefix: str
    save: SaveParams
    model: ModelParams
    train: TrainParams
    loss: LossParams
    learning_rate: LearningRateParams
    optimizer: OptimizerParams
    validation: Mapping[str, ValidationParams] = field(default_factory=dict)
    load: LoadParams | None = None


def read_all(**given: Any) -> tuple[Params, ...]:
    """Parse one `Params` for each model, from ``save_params=``, ``model_params=`` and so on.

    Raises
    ------
    UnknownNameError, ParamError
        Something in a dict; lists of different lengths; models of one name; data of which there
        can be only one.
    """
    several = _prefixed([_one(each, i) for i, each in enumerate(spread(given))])
    _check_shared(several)
    return tuple(several)


def spread(given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the dicts of each model; lists of one apply to all.

    Examples
    --------
    >>> spread({"a": [1, 2], "b": [3], "c": 4})
    [{'a': 1, 'b': 3, 'c': 4}, {'a': 2, 'b': 3, 'c': 4}]
    """
    # A dict alone and a list of one dict mean the same, so that both are spread over all models.
    lists = {
        name: [*value] if isinstance(value, list | tuple) else [value]
        for name, value in given.items()
    }
    lengths = {name: len(value) for name, value in lists.items() if len(value) != 1}
    if len({*lengths.values()}) > 1 or 0 in lengths.values():
        raise ParamError(f"lists of different lengths, {lengths}: one dict for each model, or one")
    n_models = max(map(len, lists.values()), default=1)
    return [
        {name: value[i if len(value) > 1 else 0] for name, value in lists.items()}
        for i in range(n_models)
    ]


def _one(given: Mapping[str, Any], i: int) -> Params:
    model = read(ModelParams, given["model_params"], "model_params")
    load = given.get("load_params")
    return Params(
        prefix=model.prefix or f"model_{i}",
        save=read(SaveParams, given["save_params"], "save_params"),
        model=model,
        train=read(TrainParams, given["train_params"], "train_params"),
        loss=read(LossParams, given.get("loss_params"), "loss_params"),
        learning_rate=read(
            LearningRateParams, given.get("learning_rate_params"), "learning_rate_params"
        ),
        optimizer=read(OptimizerParams, given.get("optimizer_params"), "optimizer_params"),
        validation=read_validations(given.get("validation_params"), "validation_params"),
        load=None if load is None else read(LoadParams, load, "load_params"),
    )


def _prefixed(several: list[Params]) -> list[Params]:
    """Return parameters with separate locations for models that would share one."""
    taken = Counter(one.prefix for one in several)
    if len(taken) < len(several):
        twice = [prefix for prefix, n in taken.items() if n > 1]
        raise ParamError(f"model_params['prefix']: {twice} more than once; each has its own")
    # Only a shared location gets a suffix: a single model keeps the location that was asked for.
    shared = Counter(_place(one.save) for one in several)
    return [one if shared[_place(one.save)] == 1 else _suffixed(one) for one in several]


def _place(save: SaveParams) -> tuple[Any, ...]:
    return save.host, save.port, save.dbname, save.collname, save.exp_id


def _suffixed(one: Params) -> Params:
    return replace(
        one, save=one.save.model_copy(update={"exp_id": f"{one.save.exp_id}_{one.prefix}"})
    )


def _check_shared(several: list[Params]) -> None:
    """All models are trained on the same minibatches, of which each takes as many as it needs."""
    first, *others = several
    for other in others:
        for name, was, now in zip(
            ("func", "rest", "size of a minibatch"), _drawn(first), _drawn(other), strict=True
        ):
            # Identity first: comparing arrays gives no single bool, and iterators equal only
            # themselves.
            if was is not now and not _equal(was, now):
                raise ParamError(
                    f"train_params['data_params'] of {first.prefix!r} and {other.prefix!r} have "
                    f"another {name}; several models share one iterator of data"
                )


def _drawn(one: Params) -> tuple[Any, Any, Any]:
    data = one.train.data_params
    return data.func, data.rest, one.train.minibatch_size or data.batch_size


def _equal(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    # An array's comparison has no truth value; treated as different, since identity was checked.
    except (ValueError, RuntimeError):  # arrays
        return False
