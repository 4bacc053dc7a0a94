"""Parameters of training and validation: data, length, and the results of each unit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator

from notebook_probe.errors import ParamError
from notebook_probe.experiment.params.base import Given, Whole, WithRest, read

__all__ = ["DataParams", "FuncParams", "TrainParams", "ValidationParams", "read_validations"]


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
