"""Parameters of saving and loading: contents, frequencies and locations."""

from __future__ import annotations

import re
from collections.abc import Callable
from os import PathLike, fspath
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from notebook_probe.experiment.params.base import Frequency, Given, Name, Names, Whole

__all__ = ["LoadParams", "SaveParams"]


def _path(value: Any) -> Any:
    return Path(value) if isinstance(value, str | PathLike) else value


class SaveParams(Given):
    """Every frequency counts units; None is never.

    Parameters
    ----------
    host, port, dbname, collname, exp_id
        The folder of the experiment; all but the last may be left out.
    save_metrics_freq, save_valid_freq, save_filters_freq, cache_filters_freq
        A record; validation and a record; a permanent checkpoint; one of the recent ones.
    cache_max_num : int
        How many recent checkpoints remain.
    do_save : bool
        False writes nothing.
    save_initial_filters : bool
        A checkpoint of the state before training, when nothing was loaded.
    save_to_gfs : names
        Results that are stored whole; others of more than one element are averaged.
    cache_dir : path, optional
        Folder of the checkpoints; by default next to the record.
    save_intermediate_freq : int, optional
        Of a test: of which batches the results are separate records.
    """

    host: Name | None = None
    port: Annotated[Whole, Field(ge=0, le=65535)] | None = None
    dbname: Name | None = None
    collname: Name | None = None
    exp_id: Name
    save_metrics_freq: Frequency = 5
    save_valid_freq: Frequency = 3000
    save_filters_freq: Frequency = 30000
    cache_filters_freq: Frequency = 3000
    cache_max_num: Annotated[Whole, Field(ge=1)] = 6
    do_save: bool = True
    save_initial_filters: bool = True
    save_to_gfs: Names = ()
    cache_dir: Annotated[Path | None, BeforeValidator(_path)] = None
    save_intermediate_freq: Frequency = None


def _path_text(value: Any) -> Any:
    return fspath(value) if isinstance(value, PathLike) else value


def _wanted(value: Any) -> Any:
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list | tuple | set | frozenset):
        return tuple(value)
    return value


class LoadParams(Given):
    """Parameters of loading: what to search, and what to load.

    Parameters
    ----------
    host, port, dbname, collname, exp_id
        Another experiment; what is left out is that of ``save_params``.
    do_restore : bool
        False starts again, whatever is saved.
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
        Where the newest checkpoint of the own place is damaged, continue from the one before.
    """

    host: Name | None = None
    port: Annotated[Whole, Field(ge=0, le=65535)] | None = None
    dbname: Name | None = None
    collname: Name | None = None
    exp_id: Name | None = None
    do_restore: bool = True
    query: dict[str, Any] | None = None
    from_ckpt: Annotated[str | None, BeforeValidator(_path_text)] = None
    to_restore: Annotated[
        tuple[str, ...] | re.Pattern[str] | Callable[..., Any] | None, BeforeValidator(_wanted)
    ] = None
    load_param_dict: dict[str, str] | None = None
    strict: bool = True
    restore_global_step: bool = True
    fall_back: bool = True
