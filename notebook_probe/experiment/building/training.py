"""A training with everything of one model, built and not started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import nn

from notebook_probe.experiment.building.calling import call_model
from notebook_probe.experiment.building.loss import ExperimentLoss
from notebook_probe.experiment.building.stream import Reader
from notebook_probe.experiment.building.trainer import UnitTrainer
from notebook_probe.experiment.params.several import Params
from notebook_probe.experiment.places import ExperimentFolder
from notebook_probe.experiment.saving import Saver
from notebook_probe.experiment.validation import Validation
from notebook_probe.train.loop.loop import Loop

__all__ = ["TrainedModel"]


@dataclass(frozen=True)
class TrainedModel:
    """One of the models of an experiment, ready to be trained.

    Attributes
    ----------
    params : Params
        Parameters from which the training was built.
    model : nn.Module
    trainer : UnitTrainer
    loop : Loop
        Trains it; hooks may be added.
    data : Reader
        Reader of the batches, which all models share.
    loss : ExperimentLoss
    validations : tuple of Validation
    place : ExperimentFolder or None
        Location where the training is saved.
    saver : Saver
    config : dict
        Parameters that are stored in the record.
    generators : dict
        States of the random generators that it begins with.
    """

    params: Params
    model: nn.Module
    trainer: UnitTrainer
    loop: Loop
    data: Reader
    loss: ExperimentLoss
    validations: tuple[Validation, ...]
    place: ExperimentFolder
    saver: Saver
    config: Mapping[str, Any]
    generators: Mapping[str, Any]

    @property
    def prefix(self) -> str:
        """Name of the model among several."""
        return self.params.prefix

    def validate(self) -> dict[str, dict[str, Any]]:
        """Run every validation on the present model; return the result of each."""
        call = partial(call_model, targets=self.params.loss.pred_targets)
        return {
            one.name: one.run(self.model, self.loss.as_target, call) for one in self.validations
        }
