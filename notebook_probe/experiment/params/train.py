"""What is trained on, how long, and what is told of each unit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field, field_validator

from notebook_probe.experiment.params.door import Given, Whole, WithRest

__all__ = ["DataParams", "FuncParams", "TrainParams"]


class FuncParams(WithRest):
    """A function and what it is called with.

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
        Left out, the function is not told.
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
        """Into how many parts a batch is drawn."""
        size = self.data_params.batch_size
        return 1 if size is None or self.minibatch_size is None else size // self.minibatch_size
