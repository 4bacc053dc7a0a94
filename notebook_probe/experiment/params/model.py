"""Which network is trained, where, and what of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import torch
from pydantic import BeforeValidator, Field

from notebook_probe.experiment.params.door import Name, Whole, WithRest

__all__ = ["ModelParams"]


def _device(value: Any) -> Any:
    """One device; of tfutils' list of devices the only one."""
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


def _names(value: Any) -> Any:
    return (
        (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value
    )


class ModelParams(WithRest):
    """``func(inputs=first batch, train=True, seed=seed, **rest)`` makes it.

    Parameters
    ----------
    func : callable
        Returns the module, or ``(module, cfg)``; is given of the first three what it accepts.
    seed : int
        Of all random generators.
    prefix : str, optional
        What it is called among several.
    devices : device, optional
    trainable_scopes : names, optional
        Parameters whose names begin so are trained, no others.
    """

    func: Callable[..., Any]
    seed: Annotated[Whole, Field(ge=0, lt=2**32)] = 0
    prefix: Name | None = None
    devices: Annotated[torch.device | None, BeforeValidator(_device)] = None
    trainable_scopes: Annotated[tuple[str, ...] | None, BeforeValidator(_names)] = None
