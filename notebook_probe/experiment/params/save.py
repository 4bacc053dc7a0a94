"""What is saved, how often, and where."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from notebook_probe.experiment.params.door import Frequency, Given, Name, Whole

__all__ = ["SaveParams"]


def _path(value: Any) -> Any:
    return Path(value) if isinstance(value, str | PathLike) else value


def _names(value: Any) -> Any:
    return (
        (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value
    )


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
        Where checkpoints lie; by default beside the record.
    save_intermediate_freq : int, optional
        Of a test: of which batches the results are records of their own.
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
    save_to_gfs: Annotated[tuple[str, ...], BeforeValidator(_names)] = ()
    cache_dir: Annotated[Path | None, BeforeValidator(_path)] = None
    save_intermediate_freq: Frequency = None
