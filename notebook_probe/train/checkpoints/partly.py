"""Partial use of a checkpoint by another training: weights, moments, progress."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from notebook_probe.errors import CheckpointError
from notebook_probe.model.unwrapped import unwrap
from notebook_probe.train.checkpoints.contents import (
    SavedTraining,
    check_format,
    optimizer_differences,
)
from notebook_probe.train.checkpoints.fitting import Wanted, fitted
from notebook_probe.train.checkpoints.sharded import laid_out, optimizer_laid_out
from notebook_probe.train.trainer.trainer import Trainer

__all__ = ["restore_partly"]


def restore_partly(
    loop: SavedTraining,
    state: dict[str, Any],
    where: str,
    to_restore: Wanted = None,
    renames: Mapping[str, str] | None = None,
    *,
    strict: bool = True,
    step: bool = True,
) -> str:
    """Restore the weights that fit, and their moments from an optimizer of the same kind.

    Data, generators and metrics begin as in a new training.

    Parameters
    ----------
    to_restore, renames
        See `fitted`; the moments of the optimizer are taken with all the weights only.
    strict : bool
        Refuse weights of other shapes.
    step : bool
        Continue to count from its updates; schedulers are stepped as often.

    Returns
    -------
    str
        Text that lists what begins fresh.

    Raises
    ------
    CheckpointError
        The file is no checkpoint, or does not fit; nothing has been changed then.
    ValueError
        For a name that nobody knows.
    """
    check_format(state, where)
    trainer = loop.trainer
    weights = fitted(state["trainer"]["model"], trainer.state_dict()["model"], to_restore, renames)
    if strict and weights.shapes:
        raise CheckpointError(
            f"{where} does not fit {type(trainer.model).__name__}: {weights.shapes}; "
            f"strict=False leaves these fresh"
        )
    # An optimizer knows parameters by position, so that moments fit only if all weights do.
    some = to_restore is not None or bool(renames) or bool(weights.differences)
    others = (
        "the optimizer, as of weights alone"
        if some
        else "; ".join(optimizer_differences(state, loop))
    )
    trainer.load_weights(laid_out(weights.state, unwrap(trainer.model)))
    if not others:
        _take_moments(trainer, state["trainer"]["optimizer"])
    if step:
        loop.begin_at(state["step"])
    return "; ".join(filter(None, (weights.differences, others)))


def _take_moments(trainer: Trainer, saved: dict[str, Any]) -> None:
    """Restore the optimizer's state of each parameter, but keep this training's settings."""
    laid = optimizer_laid_out(saved, trainer.optimizer)
    own = trainer.optimizer.state_dict()["param_groups"]
    trainer.optimizer.load_state_dict({"state": laid["state"], "param_groups": own})
