"""Stored streams of named scalars, and of arrays with per-module shapes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from notebook_probe.errors import RecordFormatError
from notebook_probe.record.format.elements import labels_of
from notebook_probe.record.format.kinds import NAMED, RAGGED, Kind, blob
from notebook_probe.record.format.lookup import columns
from notebook_probe.record.format.schema import INDEX_IN_MODULE, MODULE_OF_ELEMENT
from notebook_probe.record.format.source import Floats
from notebook_probe.record.read.manifest import Manifest
from notebook_probe.record.read.stored import MOST_NAMES, StoredStream, check_length

__all__ = ["StoredBlob", "StoredNames", "StoredRagged"]


class StoredRagged(StoredStream):
    """A StreamView whose columns are the elements of the modules' vectors."""

    column_arrays = (MODULE_OF_ELEMENT, INDEX_IN_MODULE)

    @property
    def _dims(self) -> tuple[str, ...]:
        return ("step", "element")

    @property
    def kind(self) -> Kind:
        return RAGGED

    def _labels(self, attrs: Mapping[str, Any]) -> tuple[str, ...]:
        module, index = (self._arrays[name] for name in self.column_arrays)
        module.expect("string", ("element",), (None,))
        index.expect("int64", ("element",), module.shape)
        check_length(module, MOST_NAMES)
        places = index[:]
        run = np.arange(len(places))
        starts = np.maximum.accumulate(np.where(places == 0, run, 0))
        if not np.array_equal(places, run - starts):
            raise RecordFormatError(f"{index.place} does not count the elements of each module")
        return labels_of(module[:].tolist(), places)


class StoredNames(StoredStream):
    """A StreamView with one quantity, whose columns are the names of logged scalars."""

    column_arrays = ("name",)

    @property
    def _dims(self) -> tuple[str, ...]:
        return ("step", "name")

    @property
    def kind(self) -> Kind:
        return NAMED


class StoredBlob(StoredStream):
    """A StreamView with one quantity and one column, whose cells are arrays."""

    column_arrays = ()

    def __init__(self, manifest: Manifest, path: str) -> None:
        self.quantity = path.split("/")[-2]
        array = manifest.array(f"{path}/{self.quantity}")
        if len(array.shape) < 2:
            raise RecordFormatError(f"{array.place} has no dimension but {array.dims}")
        self._array_dims = array.dims
        self._kind = blob(self.quantity, self._module(manifest, path), array.shape[1:])
        super().__init__(manifest, path)
        if not self.variables:  # it is all that there is
            raise next(iter(self.problems), RecordFormatError(f"{array.place} is no quantity"))

    @staticmethod
    def _module(manifest: Manifest, path: str) -> str:
        module = manifest.group_attrs(path).get("module")
        if not isinstance(module, str):
            raise RecordFormatError(f"{manifest.place(path)} does not say of which module it is")
        return module

    @property
    def _dims(self) -> tuple[str, ...]:
        return self._array_dims

    @property
    def kind(self) -> Kind:
        return self._kind

    @property
    def cell(self) -> tuple[int, ...]:
        return self._kind.cell

    def _labels(self, attrs: Mapping[str, Any]) -> tuple[str, ...]:
        return (str(attrs["module"]),)

    def values(
        self,
        quantity: str,
        start: int = 0,
        stop: int | None = None,
        modules: Sequence[str] | None = None,
    ) -> Floats:
        cells = super().values(quantity, start, stop)[:, None]
        places = columns(
            self.name, self._module_index, self.modules if modules is None else modules
        )
        return cells[:, places]
