"""Build the model, loss, optimizer and data of an experiment from its parameters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from notebook_probe.experiment.building.data import Placed, make_data
from notebook_probe.experiment.building.loss import ExperimentLoss
from notebook_probe.experiment.building.model import log_devices, make_model, seed_all, trained
from notebook_probe.experiment.building.optimizer import (
    make_optimizer,
    with_default_optimizer,
    with_default_rate,
)
from notebook_probe.experiment.building.results import targets_of
from notebook_probe.experiment.building.stream import Stream
from notebook_probe.experiment.building.trainer import UnitTrainer
from notebook_probe.experiment.building.training import TrainedModel
from notebook_probe.experiment.params.plain import Origins, plain
from notebook_probe.experiment.params.sections import ValidationParams
from notebook_probe.experiment.params.several import Params
from notebook_probe.experiment.places import ExperimentFolder
from notebook_probe.experiment.saving import Saver
from notebook_probe.experiment.validation import Validation
from notebook_probe.record.format.notes import CONFIG, written_notes
from notebook_probe.train.generators import generator_states
from notebook_probe.train.loop.loop import Loop

__all__ = ["build", "make_validation", "recorded"]


def build(
    several: Sequence[Params], *, log_device_placement: bool = False, skip_check: bool = False
) -> tuple[TrainedModel, ...]:
    """Make every model with all that trains it; one stream of data for all.

    Raises
    ------
    ParamError
        Something cannot be stored, which is found out before anything is made.
    """
    several = [_with_defaults(one) for one in several]
    origins = Origins(skip_check)
    # Before anything is built: what cannot be recorded is refused before the first update.
    configs = [recorded(one, origins) for one in several]
    first = several[0]
    # The data's function may draw random numbers, too.
    seed_all(first.model.seed)
    stream = Stream(
        make_data(
            first.train.data_params, "train_params['data_params']", first.train.minibatch_size
        )
    )
    trainings = tuple(
        _made(params, config, stream, alone=len(several) == 1)
        for params, config in zip(several, configs, strict=True)
    )
    if log_device_placement:
        for one in trainings:
            log_devices(one.prefix, one.model)
    return trainings


def recorded(params: Params, origins: Origins) -> dict[str, Any]:
    """Return the parameters as stored in a record: ``config["model"]["depth"]``.

    Raises
    ------
    ParamError
        No record can hold it.
    """
    given = {
        "save": params.save,
        "model": params.model,
        "train": params.train,
        "loss": params.loss,
        "learning_rate": params.learning_rate,
        "optimizer": params.optimizer,
        "validation": params.validation,
        "load": params.load,
    }
    found = {name: plain(one, f"{name}_params", origins) for name, one in given.items()}
    written_notes(CONFIG, found)
    return found


def make_validation(
    name: str, params: ValidationParams, device: torch.device | None = None
) -> Validation:
    """Return one validation with its data."""
    targets, loop = params.targets, params.valid_loop
    where = f"validation_params[{name!r}]['data_params']"
    return Validation(
        name=name,
        data=Placed(make_data(params.data_params, where), device),
        targets=None if targets is None else targets_of(targets.func, targets.rest),
        num_steps=params.num_steps,
        agg=params.agg_func,
        online_agg=params.online_agg_func,
        loop=None if loop is None else partial(loop.func, **loop.rest),
    )


def _with_defaults(params: Params) -> Params:
    return replace(
        params,
        learning_rate=with_default_rate(params.learning_rate),
        optimizer=with_default_optimizer(params.optimizer),
    )


def _made(params: Params, config: dict[str, Any], stream: Stream, *, alone: bool) -> TrainedModel:
    """Build the training of one model."""
    # Each model starts from its own seed, whatever the models before it have drawn.
    seed_all(params.model.seed)
    data = stream.reader()
    model, cfg = make_model(params.model, stream.first)
    optimizer, rate = make_optimizer(
        params.optimizer, params.learning_rate, trained(model, params.model.trainable_scopes)
    )
    # Building the next model draws as well; the training restores these when it starts.
    generators = generator_states()
    loss, targets, train_loop = (
        ExperimentLoss(params.loss),
        params.train.targets,
        params.train.train_loop,
    )
    trainer = UnitTrainer(
        model=model,
        loss=loss,
        pred_targets=params.loss.pred_targets,
        optimizer=optimizer,
        scheduler=rate,
        num_minibatches=params.train.num_minibatches,
        targets=None if targets is None else targets_of(targets.func, targets.rest),
        train_loop=None if train_loop is None else partial(train_loop.func, **train_loop.rest),
        device=params.model.devices,
    )
    # The unit checks its loss against `thres_loss` itself and raises its own errors.
    loop = Loop(trainer, check_finite=False, progress=None if alone else False)
    loop.add(rate)
    place = ExperimentFolder.of(params.save)
    return TrainedModel(
        params=params,
        model=model,
        trainer=trainer,
        loop=loop,
        data=data,
        loss=loss,
        validations=tuple(
            make_validation(name, one, params.model.devices)
            for name, one in params.validation.items()
        ),
        place=place,
        saver=Saver(params.save, place),
        config=_with_cfg(config, cfg),
        generators=generators,
    )


def _with_cfg(config: dict[str, Any], cfg: Any) -> dict[str, Any]:
    """Return the config with the cfg that the model's function has returned."""
    if cfg is None:
        return config
    # The cfg comes from the user's code and reaches the record later: check now that it fits.
    config["model"]["cfg"] = plain(cfg, "model_params: cfg", Origins(skip_check=True))
    written_notes(CONFIG, config)
    return config
