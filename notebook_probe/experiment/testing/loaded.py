"""A model with the weights of an experiment, made as that has made it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from notebook_probe.experiment.building.build import make_validation
from notebook_probe.experiment.building.calling import accepts, placed
from notebook_probe.experiment.building.model import make_model, seed_all
from notebook_probe.experiment.params.sections import ModelParams
from notebook_probe.experiment.places import ExperimentFolder
from notebook_probe.experiment.restoring import restore
from notebook_probe.experiment.restoring.found import Found, find
from notebook_probe.experiment.saving.units import read_config, read_units
from notebook_probe.experiment.testing.params import TestParams
from notebook_probe.experiment.validation import Validation
from notebook_probe.home import home
from notebook_probe.train.loop.loop import Loop
from notebook_probe.train.trainer.trainer import Trainer

__all__ = ["Loaded", "load"]

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Loaded:
    """One of the models of a test, loaded.

    Attributes
    ----------
    params : TestParams
    model : nn.Module
    validations : tuple of Validation
    step : int
        Updates that had been done.
    record_id : str
        Id of the unit that was loaded; empty if a file was loaded.
    config : dict
        Config of the test that is stored in its record.
    """

    params: TestParams
    model: nn.Module
    validations: tuple[Validation, ...]
    step: int
    record_id: str
    config: Mapping[str, Any]

    @property
    def prefix(self) -> str:
        """Name of the model among several."""
        return self.params.prefix


def load(params: TestParams, config: Mapping[str, Any]) -> Loaded:
    """Find the newest matching unit, and load it into a newly made model.

    Parameters
    ----------
    params : TestParams
    config : dict
        The same, as a record keeps it.

    Raises
    ------
    FileNotFoundError
        There is none.
    CheckpointError
        The checkpoint does not fit.
    """
    place = _place(params)
    found = find(place, params.load, is_saving=False)
    if not found.path:
        raise FileNotFoundError(f"load_params name nothing to test: {params.load.shown()}")
    trained = {} if found.place is None else read_config(found.place)
    made_by = _as_trained(params.model, trained.get("model", {}))
    validations = tuple(
        make_validation(name, one, made_by.devices) for name, one in params.validation.items()
    )
    seed_all(made_by.seed)
    model, _ = make_model(made_by, lambda: _first_batch(validations[0], made_by.devices))
    step = _restore(params, model, place, found)
    seed_all(made_by.seed)  # whatever the model has drawn
    record_id = _record_id(found)
    known = {**config, "validates": record_id, "step": step}
    return Loaded(params, model, validations, step, record_id, known)


def _place(params: TestParams) -> ExperimentFolder:
    """Return the location; names missing in ``load_params`` are those of ``save_params``."""
    own = (
        ExperimentFolder(home() / "experiments")
        if params.save is None
        else ExperimentFolder.of(params.save)
    )
    return own.elsewhere(params.load)


def _as_trained(params: ModelParams, recorded: Mapping[str, Any]) -> ModelParams:
    """Return the parameters with the training's seed and cfg, and ``train=False``, if taken."""
    takes = accepts(params.func)
    rest = dict(params.rest)
    if "train" in takes.names or takes.any_other:
        rest.setdefault("train", False)
    if "cfg" in takes.names and recorded.get("cfg") is not None:
        rest.setdefault("cfg", recorded["cfg"])
    seed = recorded.get("seed", params.seed)
    return params.model_copy(update={"seed": seed, "rest": rest})


def _first_batch(validation: Validation, device: torch.device | None) -> Mapping[str, Any]:
    return placed(next(iter(validation.data)), device)


def _restore(params: TestParams, model: nn.Module, place: ExperimentFolder, found: Found) -> int:
    """Load the checkpoint that was found, and none that was saved since."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)  # never steps
    loop = Loop(Trainer(model, None, optimizer), progress=False)
    pinned = params.load.model_copy(update={"from_ckpt": found.path, "restore_global_step": True})
    restored = restore(loop, place, pinned, is_saving=False)
    if restored.left:
        log.warning("%s: begins fresh: %s", params.prefix, restored.left)
    return restored.step


def _record_id(found: Found) -> str:
    if found.place is None:
        return ""
    return next((one.id for one in read_units(found.place) if one.checkpoint == found.path), "")
