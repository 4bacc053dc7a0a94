"""Several records seen as one dataset along a new dimension: runs of a study, ranks of a job.

Steps and modules are joined; only the step axes are read before the values are accessed.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import numpy as np
import xarray as xr

from notebook_probe.errors import RecordWarning
from notebook_probe.record.format.array_specs import STEP_ATTRS
from notebook_probe.record.format.missing import NOT_MEASURED
from notebook_probe.record.format.schema import width
from notebook_probe.record.format.source import Floats, Steps
from notebook_probe.record.views.chunked import PREFERRED
from notebook_probe.record.views.dataset import Dataset
from notebook_probe.record.views.lazy import Index, lazy_variable

__all__ = ["CHUNK_MODULES", "CHUNK_VALUES", "stack_records"]

CHUNK_VALUES = 2**20
CHUNK_MODULES = 16
OPEN_AT_ONCE = 8
"""Records whose step axes are kept in memory."""


def stack_records(
    dim: str, labels: Sequence[str | int], opened: Sequence[Callable[[], xr.Dataset]]
) -> xr.Dataset:
    """Dataset with dims (dim, module, step): every quantity of every record, NaN where it has none.

    The wall time, which differs between records, is left out, and so are vectors of every module's
    own length.

    Parameters
    ----------
    labels : sequence
        Coordinates along ``dim``, one of each record.
    opened : sequence of callable
        Each gives the ``data`` of one record, again when it is asked again.

    Warns
    -----
    RecordWarning
        For vectors of a record whose axis is another than in those before; they are left out.
    """
    data_of = _Opened(opened)
    union = _Union()
    for place, label in enumerate(labels):
        union.add(place, str(label), data_of(place))
    names, steps = list(union.modules), union.steps
    variables = {
        name: lazy_variable(
            (dim, *map(str, like.dims)),
            (len(labels), len(names), len(steps), *like.shape[2:]),
            partial(_read, data_of, union.records_of[name], name, np.array(names, object), steps),
            {key: str(value) for key, value in like.attrs.items()},
        )
        for name, like in union.like.items()
    }
    for variable in variables.values():
        variable.encoding[PREFERRED] = _preferred(dim, variable)
    coords = {
        **union.along,
        dim: xr.Variable(dim, np.array([*labels, None], object)[:-1]),
        "module": xr.Variable("module", np.array([*names, None], object)[:-1]),
        "step": xr.Variable("step", steps, STEP_ATTRS),
    }
    return Dataset(variables, coords=coords)


def _preferred(dim: str, variable: xr.Variable) -> dict[str, int]:
    """Return chunk sizes close to the records' own, so that data is decoded once."""
    _, n_modules, n_steps, *cell = variable.shape
    modules = max(CHUNK_MODULES, width(n_modules))
    steps = max(1, CHUNK_VALUES // (modules * math.prod(cell)))
    return {dim: 1, "module": min(n_modules, modules), "step": min(n_steps, steps)}


class _Opened:
    """The records last looked at; a copy sent to another process opens its own."""

    def __init__(self, opened: Sequence[Callable[[], xr.Dataset]]) -> None:
        self._opened = opened
        # Each open data set holds files open; a job may have thousands of records.
        self._data_of = lru_cache(maxsize=OPEN_AT_ONCE)(lambda place: opened[place]())

    def __call__(self, place: int) -> xr.Dataset:
        return self._data_of(place)

    def __reduce__(self) -> tuple[type[_Opened], tuple[Sequence[Callable[[], xr.Dataset]]]]:
        return _Opened, (self._opened,)


class _Union:
    """Union of the axes of the records seen so far."""

    def __init__(self) -> None:
        self.modules: dict[str, None] = {}
        self.steps: Steps = np.empty(0, np.int64)
        self.like: dict[str, xr.DataArray] = {}
        """The first of each quantity."""
        self.records_of: dict[str, set[int]] = {}
        """The records that have each quantity."""
        self.along: dict[str, xr.DataArray] = {}

    def add(self, place: int, label: str, data: xr.Dataset) -> None:
        self.modules |= dict.fromkeys(data["module"].to_numpy().tolist())
        self.steps = np.union1d(self.steps, data["step"].to_numpy())
        for name in (str(name) for name, array in data.items() if array.dims[0] == "module"):
            array = data[name]
            if self._fits(array):
                self.like.setdefault(name, array)
                self.records_of.setdefault(name, set()).add(place)
            else:
                text = f"left out: {name} of {label}, whose axis differs from the others"
                warnings.warn(text, RecordWarning, stacklevel=4)

    def _fits(self, array: xr.DataArray) -> bool:
        """Note the axes of vectors; False when one of that name is another."""
        own = {
            str(name): along
            for name, along in array.coords.items()
            if along.dims and along.dims[0] in array.dims[2:]
        }
        if any(name in self.along and not self.along[name].equals(own[name]) for name in own):
            return False
        if self.like.get(str(array.name), array).dims != array.dims:
            return False
        self.along |= {name: along for name, along in own.items() if name not in self.along}
        return True


def _read(
    data_of: Callable[[int], xr.Dataset],
    records_with: set[int],
    name: str,
    modules: Index,
    steps: Steps,
    records: Index,
    wanted_modules: Index,
    wanted_steps: Index,
    *elements: Index,
) -> Floats:
    """Cells (record, module, step, ...) of a quantity."""
    labels, numbers = modules[wanted_modules], steps[wanted_steps]
    shape = (len(records), len(labels), len(numbers), *map(len, elements))
    out = np.full(shape, NOT_MEASURED, np.float32)
    for row, record in enumerate(records.tolist()):
        if record in records_with:
            array = data_of(record)[name]
            columns = array.get_index("module").get_indexer(labels)
            own = array["step"].to_numpy()
            rows = np.searchsorted(own, numbers).clip(max=max(0, len(own) - 1))
            here = np.flatnonzero(columns >= 0)
            found = np.flatnonzero(own[rows] == numbers) if len(own) else rows[:0]
            if len(here) and len(found):
                picked = array.isel(module=columns[here], step=rows[found])
                cells = picked.to_numpy()
                for axis, places in enumerate(elements, start=2):
                    cells = cells.take(places, axis)
                out[row][np.ix_(here, found)] = cells
    return out
