"""Sections of the parameters: model and optimizer, data and validation, saving and loading."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Annotated, Any, ClassVar

import torch
from pydantic import BeforeValidator, Field, field_validator

from notebook_probe.errors import ParamError
from notebook_probe.experiment.params.base import (
    Frequency,
    Given,
    Name,
    Names,
    NamesOrNone,
    Whole,
    WithRest,
    read,
)

__all__ = [
    "DataParams",
    "FuncParams",
    "LearningRateParams",
    "LoadParams",
    "LossParams",
    "ModelParams",
    "OptimizerParams",
    "SaveParams",
    "TrainParams",
    "ValidationParams",
    "read_validations",
]


def _device(value: Any) -> Any:
    """Return one device; of tfutils' list of devices the only one."""
    if isinstance(value, list | tuple):
        if len(value) != 1:
            raise ValueError("one device for a model is expected")
        (value,) = value
    if value is None or isinstance(value, torch.device):
        return value
    try:
        return torch.device(value)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"no device: {error}") from None


class ModelParams(WithRest):
    """``func(inputs=first batch, train=True, seed=seed, **rest)`` makes it.

    Parameters
    ----------
    func : callable
        Returns the module, or ``(module, cfg)``; is given of the first three what it accepts.
    seed : int
        Seed of all random generators.
    prefix : str, optional
        Name of the model among several.
    devices : device, optional
    trainable_scopes : names, optional
        Parameters whose names begin so are trained, no others.
    """

    func: Callable[..., Any]
    # The limit is that of np.random.seed, which takes 32 bits.
    seed: Annotated[Whole, Field(ge=0, lt=2**32)] = 0
    prefix: Name | None = None
    devices: Annotated[torch.device | None, BeforeValidator(_device)] = None
    trainable_scopes: NamesOrNone = None


class LossParams(Given):
    """``loss_func(outputs, *[inputs[key] for key in pred_targets], **loss_func_kwargs)``.

    Parameters
    ----------
    pred_targets : names
        Keys of the batch.
    loss_func : callable, optional
        By default the cross entropy of each case.
    loss_func_kwargs, agg_func_kwargs : dict
    agg_func : callable or None, optional
        ``agg_func(loss, **agg_func_kwargs)``. Left out, the loss is averaged and the terms that
        the model adds by `add_loss` are added; with None it is the loss as returned.
    """

    deprecated: ClassVar[Mapping[str, str]] = {
        "loss_per_case_func": "loss_func",
        "targets": "pred_targets",
    }

    pred_targets: Names = ("labels",)
    loss_func: Callable[..., Any] | None = None
    loss_func_kwargs: dict[str, Any] = Field(default_factory=dict)
    agg_func: Callable[..., Any] | None = None
    agg_func_kwargs: dict[str, Any] = Field(default_factory=dict)

    @property
    def is_averaged(self) -> bool:
        """True if no aggregation of the losses of cases was given."""
        # An explicit None means "take the loss as it is", so it is the presence of the key that
        # counts.
        return "agg_func" not in self.model_fields_set


class OptimizerParams(WithRest):
    """``optimizer(parameters, lr=..., **rest)`` makes it.

    Parameters
    ----------
    optimizer : class, optional
        By default clipped stochastic gradient descent with a momentum of 0.9.
    """

    deprecated: ClassVar[Mapping[str, str]] = {"func": "optimizer"}

    optimizer: Callable[..., Any] | None = None


class LearningRateParams(WithRest):
    """``func(global_step, **rest)`` is the rate of the update after ``global_step`` updates.

    Parameters
    ----------
    func : callable, optional
        By default an exponential decay.
    """

    func: Callable[..., Any] | None = None


class FuncParams(WithRest):
    """A function and its arguments.

    Parameters
    ----------
    func : callable
    """

    func: Callable[..., Any]


class DataParams(FuncParams):
    """``func(batch_size=..., **rest)`` returns batches, each a dict.

    Parameters
    ----------
    batch_size : int, optional
        By default it is not passed to the function.
    """

    batch_size: Annotated[Whole, Field(ge=1)] | None = None


class TrainParams(Given):
    """A unit is one update.

    Parameters
    ----------
    data_params : dict
    targets : dict, optional
        ``func(inputs, output, **rest)`` returns a dict of what is recorded of each unit.
    num_steps : int, optional
        Units in all; None is without end.
    validate_first : bool
        Validate the state before training.
    thres_loss : float
        A loss above it is an error.
    minibatch_size : int, optional
        Size of the parts in which a batch is drawn, whose gradients are averaged.
    train_loop : dict, optional
        ``func(step, batches, num_minibatches=k, **rest)`` trains a unit by ``step(batches)``.
    """

    data_params: DataParams
    targets: FuncParams | None = None
    num_steps: Annotated[Whole, Field(ge=0)] | None = None
    validate_first: bool = True
    thres_loss: float = 100.0
    minibatch_size: Annotated[Whole, Field(ge=1)] | None = None
    train_loop: FuncParams | None = None

    @field_validator("thres_loss", mode="before")
    @classmethod
    def _number(cls, value: Any) -> Any:
        return float(value) if isinstance(value, int) and not isinstance(value, bool) else value

    @field_validator("thres_loss")
    @classmethod
    def _comparable(cls, value: float) -> float:
        if value != value:
            raise ValueError("no loss is above NaN")
        return value

    @field_validator("minibatch_size")
    @classmethod
    def _divides(cls, value: int | None, info: Any) -> int | None:
        # A field that was itself refused is absent here; its own error is reported alone.
        data = info.data.get("data_params")
        if value is None or data is None:
            return value
        if data.batch_size is None:
            raise ValueError("of which batch_size? data_params has none")
        if data.batch_size % value:
            raise ValueError(f"does not divide batch_size={data.batch_size}")
        return value

    @property
    def num_minibatches(self) -> int:
        """Number of parts into which a batch is divided."""
        size = self.data_params.batch_size
        return 1 if size is None or self.minibatch_size is None else size // self.minibatch_size


class ValidationParams(Given):
    """Validation: data, results of each batch, and their aggregation.

    Parameters
    ----------
    data_params : dict
        ``func(batch_size=..., **rest)`` returns batches, each a dict.
    targets : dict, optional
        ``func(inputs, output, **rest)`` returns a dict; by default the loss.
    num_steps : int, optional
        Batches; by default as many as the data has.
    online_agg_func : callable, optional
        ``online_agg_func(so_far, result, i)`` after each batch; by default a list of all.
    agg_func : callable, optional
        ``agg_func(so_far)`` at the end.
    valid_loop : dict, optional
        A function of your own that gives the results of a batch.
    """

    aliases: ClassVar[Mapping[str, str]] = {"data": "data_params"}

    data_params: DataParams
    targets: FuncParams | None = None
    num_steps: Annotated[Whole, Field(ge=0)] | None = None
    agg_func: Callable[..., Any] | None = None
    online_agg_func: Callable[..., Any] | None = None
    valid_loop: FuncParams | None = None


def read_validations(given: Any, where: str) -> Mapping[str, ValidationParams]:
    """Read a dict of names to validations; None is an empty one."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ParamError(f"{where}={given!r}: a dict of names to dicts is expected")
    for name in given:
        if not isinstance(name, str) or not name:
            raise ParamError(f"{where}[{name!r}]: a name is expected")
    return {name: read(ValidationParams, one, f"{where}[{name!r}]") for name, one in given.items()}


def _path(value: Any) -> Any:
    return Path(value) if isinstance(value, str | PathLike) else value


class SaveParams(Given):
    """Every frequency counts units; None is never.

    Parameters
    ----------
    host, port, dbname, collname, exp_id
        The folder of the experiment; all but the last may be left out.
    save_metrics_freq, save_valid_freq, save_filters_freq, cache_filters_freq
        A record; validation and a record; a permanent checkpoint; one of the recent ones.
    cache_max_num : int
        Number of recent checkpoints that remain.
    do_save : bool
        False writes nothing.
    save_initial_filters : bool
        A checkpoint of the state before training, when nothing was loaded.
    save_to_gfs : names
        Results that are stored whole; others of more than one element are averaged.
    cache_dir : path, optional
        Folder of the checkpoints; by default next to the record.
    save_intermediate_freq : int, optional
        In a test, the interval of batches whose results are separate records.
    """

    host: Name | None = None
    port: Annotated[Whole, Field(ge=0, le=65535)] | None = None
    dbname: Name | None = None
    collname: Name | None = None
    exp_id: Name
    save_metrics_freq: Frequency = 5
    save_valid_freq: Frequency = 3000
    save_filters_freq: Frequency = 30000
    cache_filters_freq: Frequency = 3000
    cache_max_num: Annotated[Whole, Field(ge=1)] = 6
    do_save: bool = True
    save_initial_filters: bool = True
    save_to_gfs: Names = ()
    cache_dir: Annotated[Path | None, BeforeValidator(_path)] = None
    save_intermediate_freq: Frequency = None


def _path_text(value: Any) -> Any:
    return fspath(value) if isinstance(value, PathLike) else value


def _wanted(value: Any) -> Any:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list | tuple | set | frozenset):
        return tuple(value)
    return value


class LoadParams(Given):
    """Parameters of loading: what to search, and what to load.

    Parameters
    ----------
    host, port, dbname, collname, exp_id
        Another experiment; omitted parts are those of ``save_params``.
    do_restore : bool
        False starts again, whatever is saved.
    query : dict, optional
        Condition on the saved units to load: ``{"step": {"$lte": 3000}}``.
    from_ckpt : path, optional
        This file.
    to_restore : names, compiled regex or callable, optional
        These weights alone, by their names in the checkpoint.
    load_param_dict : dict of str to str, optional
        Names in the checkpoint to names in the model.
    strict : bool
        False leaves fresh what does not fit.
    restore_global_step : bool
        Also the number of updates completed.
    fall_back : bool
        If the newest checkpoint of the experiment's own folder is damaged, continue from the
        previous one.
    """

    host: Name | None = None
    port: Annotated[Whole, Field(ge=0, le=65535)] | None = None
    dbname: Name | None = None
    collname: Name | None = None
    exp_id: Name | None = None
    do_restore: bool = True
    query: dict[str, Any] | None = None
    from_ckpt: Annotated[str | None, BeforeValidator(_path_text)] = None
    to_restore: Annotated[
        tuple[str, ...] | re.Pattern[str] | Callable[..., Any] | None, BeforeValidator(_wanted)
    ] = None
    load_param_dict: dict[str, str] | None = None
    strict: bool = True
    restore_global_step: bool = True
    fall_back: bool = True
