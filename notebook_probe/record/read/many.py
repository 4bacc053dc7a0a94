"""Many runs as one dataset, read by dask where it is looked at."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from functools import partial
from glob import glob
from os import PathLike, fspath
from pathlib import Path
from uuid import uuid4

import numpy as np
import xarray as xr

from notebook_probe.errors import (
    ProbeError,
    RecordFormatError,
    RecordWarning,
    StoreSilentError,
)
from notebook_probe.record.format.schema import width
from notebook_probe.record.read.ranks import rank_folders
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.record.read.stacked import CHUNK_MODULES, CHUNK_VALUES, stack_records
from notebook_probe.record.store.destination import import_extra

__all__ = ["matching", "open_runs"]


def open_runs(runs: str | PathLike[str] | Iterable[str | PathLike[str]]) -> xr.Dataset:
    """Dims (run, module, step), of every record at these places; as `notebook_probe.open_runs`."""
    import_extra("dask.array", "analysis", "open_runs")
    records: dict[str, OpenedRecord] = {}
    problem: ProbeError = RecordFormatError(f"no record matches {runs!r}")
    for place in matching(runs):
        try:
            records |= {run: OpenedRecord(run) for run in _ranks(place)}
        except (RecordFormatError, StoreSilentError) as error:
            problem = error
            warnings.warn(f"left out: {error}", RecordWarning, stacklevel=3)
    if not records:
        raise problem
    titles = [record.name for record in records.values()]
    ids = [str(record.attrs.get("run_id", "")) for record in records.values()]
    data = stack_records("run", list(records), [partial(_data, place) for place in records])
    chunked = data.chunk(_chunks(data), token=uuid4().hex)  # dask would read all to make one
    about = {"title": np.array(titles, object), "run_id": np.array(ids, object)}
    return chunked.assign_coords({name: ("run", values) for name, values in about.items()})


def _data(place: str) -> xr.Dataset:
    return OpenedRecord(place).data


def matching(runs: str | PathLike[str] | Iterable[str | PathLike[str]]) -> list[str]:
    """Return locations, each once; a pattern such as ``"runs/*.zarr"`` is all that it matches."""
    paths = [runs] if isinstance(runs, str | PathLike) else runs
    found: list[str] = []
    for one in (str(fspath(each)) for each in paths):
        is_pattern = any(sign in one for sign in "*?[") and not Path(one).exists()
        found += sorted(glob(one)) if is_pattern else [one]  # noqa: PTH207  also absolute ones
    return list(dict.fromkeys(found))


def _ranks(place: str) -> list[str]:
    """Return the records of a job's ranks, or the record of a run."""
    return [str(folder) for folder in rank_folders(place).values()] or [place]


def _chunks(data: xr.Dataset) -> dict[str, int]:
    """Return chunk sizes close to the records' own, so that data is decoded once."""
    modules = max(CHUNK_MODULES, width(data.sizes["module"]))
    return {"run": 1, "module": modules, "step": CHUNK_VALUES // modules}
