"""From where a training goes on."""

from __future__ import annotations

import re
from collections.abc import Callable
from os import PathLike, fspath
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from notebook_probe.experiment.params.door import Given, Name, Whole

__all__ = ["LoadParams"]


def _path(value: Any) -> Any:
    return fspath(value) if isinstance(value, PathLike) else value


def _wanted(value: Any) -> Any:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list | tuple | set | frozenset):
        return tuple(value)
    return value


class LoadParams(Given):
    """Where to look, and what to take.

    Parameters
    ----------
    host, port, dbname, collname, exp_id
        Another experiment; what is left out is that of ``save_params``.
    do_restore : bool
        False begins anew, whatever is there.
    query : dict, optional
        Which of the saved units may be meant: ``{"step": {"$lte": 3000}}``.
    from_ckpt : path, optional
        This file.
    to_restore : names, compiled regex or callable, optional
        These weights alone, by their names in the checkpoint.
    load_param_dict : dict of str to str, optional
        Names in the checkpoint to names in the model.
    strict : bool
        False leaves fresh what does not fit.
    restore_global_step : bool
        Also the number of updates completed.
    fall_back : bool
        Where the newest checkpoint of the own place is damaged, go on from the one before.
    """

    host: Name | None = None
    port: Annotated[Whole, Field(ge=0, le=65535)] | None = None
    dbname: Name | None = None
    collname: Name | None = None
    exp_id: Name | None = None
    do_restore: bool = True
    query: dict[str, Any] | None = None
    from_ckpt: Annotated[str | None, BeforeValidator(_path)] = None
    to_restore: Annotated[
        tuple[str, ...] | re.Pattern[str] | Callable[..., Any] | None, BeforeValidator(_wanted)
    ] = None
    load_param_dict: dict[str, str] | None = None
    strict: bool = True
    restore_global_step: bool = True
    fall_back: bool = True
