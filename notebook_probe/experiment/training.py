"""A training from dicts of parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from notebook_probe.experiment.building.build import build
from notebook_probe.experiment.building.training import TrainedModel
from notebook_probe.experiment.params.base import check_flags
from notebook_probe.experiment.params.several import read_all
from notebook_probe.experiment.results import ExperimentResults
from notebook_probe.experiment.units.driver import train_units

__all__ = ["train", "train_from_params"]


def train_from_params(
    save_params: Any,
    model_params: Any,
    train_params: Any,
    loss_params: Any = None,
    learning_rate_params: Any = None,
    optimizer_params: Any = None,
    validation_params: Any = None,
    load_params: Any = None,
    log_device_placement: bool = False,
    dont_run: bool = False,
    skip_check: bool = False,
) -> Any:
    """Train from dicts of parameters for the model, data, loss, optimizer and storage.

    A second call with the same dicts continues where the training stopped for any reason. Any of
    the dicts may be a list: then as many models are trained in turn, on the same batches. The page
    docs/how_to/experiments.md explains every key. No dict is changed.

    Parameters
    ----------
    save_params : dict
        Location ``dbname``, ``collname``, ``exp_id``; ``save_metrics_freq``, ``save_valid_freq``,
        ``save_filters_freq``, ``cache_filters_freq``: intervals in units, or None for never.
    model_params : dict
        ``func``, which makes the model from the other entries; ``seed``.
    train_params : dict
        ``data_params`` with the ``func`` that makes batches, each a dict; ``num_steps`` in total;
        ``targets``, ``thres_loss``, ``minibatch_size``, ``train_loop``, ``validate_first``.
    loss_params : dict, optional
        ``loss_func``, and ``pred_targets``, the keys of a batch that it uses as targets.
    learning_rate_params : dict, optional
        ``func(global_step, **rest)``.
    optimizer_params : dict, optional
        ``optimizer``, a class of `torch.optim` or a similar one, and its arguments.
    validation_params : dict of dict, optional
        Validations by name: ``data_params``, ``targets``, ``num_steps``,
        ``online_agg_func``, ``agg_func``.
    load_params : dict, optional
        State to begin from, if this experiment has not begun yet: ``exp_id``, ``query``,
        ``from_ckpt``, ``to_restore``.
    log_device_placement : bool
        Log the device of each parameter.
    dont_run : bool
        Only build the training, and return the arguments of `notebook_probe.experiment.train`.
    skip_check : bool
        Skip the versions of packages and the git states of the functions.

    Returns
    -------
    results : dict
        Last results by ``prefix`` of the model, then by name of the validation.
    ids : dict
        Ids of the saved units by ``prefix`` of the model, such as ``"3f2c…:5"`` of unit 5. With
        ``dont_run``, the built training is returned instead of both.

    Raises
    ------
    UnknownNameError, ParamError
        The dicts have an invalid entry; nothing was built.
    NanLossError, HiLossError, NoChangeError
        The loss of a unit is NaN or above ``thres_loss``; nothing was updated.
    CheckpointError, FileNotFoundError
        The state to load does not fit, or does not exist.

    Examples
    --------
    >>> import torch
    >>> def batches(batch_size):
    ...     return [{"x": torch.ones(batch_size, 2), "labels": torch.zeros(batch_size).long()}] * 9
    >>> results, ids = train_from_params(
    ...     save_params={"exp_id": "ones", "do_save": False},
    ...     model_params={"func": torch.nn.Linear, "in_features": 2, "out_features": 3},
    ...     train_params={"data_params": {"func": batches, "batch_size": 4}, "num_steps": 20},
    ...     learning_rate_params={"learning_rate": 0.1},
    ... )
    >>> ids
    {'model_0': []}
    """
    check_flags(log_device_placement=log_device_placement, dont_run=dont_run, skip_check=skip_check)
    several = read_all(
        save_params=save_params,
        model_params=model_params,
        train_params=train_params,
        loss_params=loss_params,
        learning_rate_params=learning_rate_params,
        optimizer_params=optimizer_params,
        validation_params=validation_params,
        load_params=load_params,
    )
    trainings = build(several, log_device_placement=log_device_placement, skip_check=skip_check)
    return {"trainings": trainings} if dont_run else train(trainings)


def train(trainings: Sequence[TrainedModel]) -> ExperimentResults:
    """Run the training that ``train_from_params(..., dont_run=True)`` built: ``train(**built)``.

    Parameters
    ----------
    trainings : sequence of TrainedModel

    Returns
    -------
    results, ids : dict
        Same as from `notebook_probe.train_from_params`.
    """
    return train_units(trainings)
