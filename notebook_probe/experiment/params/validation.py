"""What is asked of a model beside its training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from notebook_probe.errors import ParamError
from notebook_probe.experiment.params.door import Given, Whole, read
from notebook_probe.experiment.params.train import DataParams, FuncParams

__all__ = ["ValidationParams", "read_validations"]


class ValidationParams(Given):
    """One validation: data, what is asked of each batch, and what becomes of the answers.

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
