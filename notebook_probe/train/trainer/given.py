"""Checks of a trainer's arguments, before a step could fail or silently do nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn
from torch.optim import Optimizer
from torch.optim.lr_scheduler import ReduceLROnPlateau

from notebook_probe.checks import whole_number

__all__ = ["check_given", "read_context"]


def check_given(model: Any, loss_fn: Any, optimizer: Any, scheduler: Any, accumulate: Any) -> None:
    """Refuse what cannot train this model.

    Raises
    ------
    TypeError
        For what is of another kind, such as an optimizer in the place of the loss function.
    ValueError
        For an optimizer of another model, and a number that cannot be.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"Trainer({type(model).__name__}): a torch.nn.Module is expected")
    _check_loss(loss_fn)
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"optimizer={optimizer!r}: a torch.optim.Optimizer is expected")
    _check_trains(optimizer, model, loss_fn)
    _check_scheduler(scheduler)
    whole_number("accumulate", accumulate, least=1)


def read_context(given: Any) -> dict[str, Any]:
    """Return a copy of hyperparameters.

    Raises
    ------
    TypeError
        For what is no mapping.
    """
    if not isinstance(given, Mapping):
        raise TypeError(
            f"set_context({given!r}): a dict of hyperparameters is expected, such as {{'lr': 0.1}}"
        )
    return dict(given)


def _check_loss(loss_fn: Any) -> None:
    if isinstance(loss_fn, type) and issubclass(loss_fn, nn.Module):
        name = loss_fn.__name__
        raise TypeError(f"loss_fn={name}: this is the class; a loss of it is made by {name}()")
    if isinstance(loss_fn, Optimizer):
        raise TypeError(
            f"loss_fn is {type(loss_fn).__name__}, an optimizer: Trainer(model, loss_fn, optimizer)"
        )
    if loss_fn is not None and not callable(loss_fn):
        raise TypeError(f"loss_fn={loss_fn!r}: a function is expected, or None")


def _check_trains(optimizer: Optimizer, model: nn.Module, loss_fn: Any) -> None:
    """Check that the optimizer has parameters of this model, which may have been rebuilt."""
    modules = (model, loss_fn) if isinstance(loss_fn, nn.Module) else (model,)
    own = {id(value) for module in modules for value in module.parameters()}
    groups = optimizer.param_groups
    if not any(id(value) in own for group in groups for value in group["params"]):
        raise ValueError(
            f"optimizer={type(optimizer).__name__} has no parameter of this "
            f"{type(model).__name__}, which it would never change; make it of model.parameters() "
            f"of this very model"
        )


def _check_scheduler(scheduler: Any) -> None:
    if isinstance(scheduler, ReduceLROnPlateau):
        raise TypeError(
            "scheduler=ReduceLROnPlateau is stepped with a number, and the trainer's after every "
            "update without one; instead: loop.on_epoch(lambda loop: "
            "scheduler.step(loop.last_metrics['eval_loss'])) and "
            "loop.register_state('scheduler', scheduler)"
        )
    if scheduler is not None and not callable(getattr(scheduler, "step", None)):
        raise TypeError(
            f"scheduler={scheduler!r}: one of torch.optim.lr_scheduler is expected, or None"
        )
