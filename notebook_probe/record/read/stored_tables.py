"""Reading the two tables of a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from notebook_probe.record.format.source import Event, ModuleRow
from notebook_probe.record.format.tables import DETAIL, event_columns, module_columns
from notebook_probe.record.read.manifest import Manifest
from notebook_probe.record.read.stored import MOST_NAMES, check_length

__all__ = ["read_events", "read_modules"]


def read_modules(manifest: Manifest) -> tuple[ModuleRow, ...]:
    """Return the rows of ``modules/``."""
    names = ("module", "class", "n_params", "n_own_params", "parent")
    return tuple(map(ModuleRow, *_columns(manifest, "modules", names)))


def read_events(manifest: Manifest) -> tuple[Event, ...]:
    """Return the rows of ``events/``."""
    names = ["step", "time", "kind", "text"]
    names += [DETAIL] if DETAIL in manifest.arrays("events") else []
    return tuple(map(Event, *_columns(manifest, "events", names)))


def _columns(manifest: Manifest, table: str, names: Sequence[str]) -> list[list[Any]]:
    """Columns of a table as Python's own values; RecordFormatError when they are others."""
    arrays = [manifest.array(f"{table}/{name}") for name in names]
    known = _KNOWN_COLUMNS[table]
    length = next(iter(arrays[0].shape), None)
    for name, array in zip(names, arrays, strict=True):
        array.expect(known[name].dtype, known[name].dims, (length,))
        check_length(array, MOST_NAMES)
    return [array[:].tolist() for array in arrays]


_KNOWN_COLUMNS = {
    "modules": {name: spec for name, (spec, _) in module_columns([]).items()},
    "events": {name: spec for name, (spec, _) in event_columns([]).items()},
}
