"""The network, made by the user's function."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from notebook_probe.errors import ParamError
from notebook_probe.experiment.building.calling import accepted
from notebook_probe.experiment.params.sections import ModelParams

__all__ = ["Made", "log_devices", "make_model", "seed_all", "trained"]

log = logging.getLogger(__name__)


class Made(NamedTuple):
    """A module, and what its function says it was made by."""

    module: nn.Module
    cfg: Any


def log_devices(prefix: str, model: nn.Module) -> None:
    """Log on which device each parameter of a model is."""
    for name, value in model.named_parameters():
        log.info("%s: %s is on %s", prefix, name, value.device)


def seed_all(seed: int) -> None:
    """Begin every random generator there: torch's, Python's, numpy's."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 (the global one)
    torch.manual_seed(seed)


def make_model(params: ModelParams, first: Callable[[], Mapping[str, Any]]) -> Made:
    """Call the model's function with the accepted ones of first batch, ``train`` and ``seed``.

    Raises
    ------
    ParamError
        It returns no module.
    """
    # The first batch is drawn only for a function that takes it: drawing may be slow.
    takes = accepted(params.func, inputs=None, train=True, seed=params.seed)
    if "inputs" in takes:
        takes["inputs"] = first()
        seed_all(params.seed)  # whatever was drawn for it
    made = params.func(**{**takes, **params.rest})
    module, cfg = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(module, nn.Module):
        raise ParamError(
            f"model_params['func'] returned {type(module).__name__}; a torch.nn.Module is "
            f"expected, or (module, cfg)"
        )
    return Made(module if params.devices is None else module.to(params.devices), cfg)


def trained(model: nn.Module, scopes: tuple[str, ...] | None) -> list[tuple[str, Tensor]]:
    """Return the trained parameters, with their names.

    Raises
    ------
    ParamError
        A scope that begins no name.
    """
    named = [*model.named_parameters()]
    for scope in scopes or ():
        if not any(name.startswith(scope) for name, _ in named):
            raise ParamError(
                f"model_params['trainable_scopes']: no parameter begins with {scope!r}; there are "
                f"{', '.join(name for name, _ in named[:12])}"
            )
    return [one for one in named if scopes is None or one[0].startswith(scopes)]
