"""The two tables of a record: its modules, and what happened at which step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from notebook_probe.record.arrays import Arrays
from notebook_probe.record.manifest import Manifest
from notebook_probe.record.schema import NAMES_CHUNK, TIME_ATTRS, ArraySpec, module_label, text_spec
from notebook_probe.record.source import Event, ModuleRow
from notebook_probe.record.stored import MOST_NAMES, check_length

__all__ = ["event_columns", "module_columns", "read_events", "read_modules", "write_table"]

Column: TypeAlias = tuple[ArraySpec, list[Any]]


def module_columns(modules: Sequence[ModuleRow]) -> dict[str, Column]:
    """The columns of ``modules/``, one row per module in definition order."""

    def numbers(long_name: str) -> ArraySpec:
        return _numbers("module", {"units": "1", "long_name": long_name})

    return {
        "module": (text_spec("module", "path"), [module_label(row.name) for row in modules]),
        "class": (text_spec("module", "class"), [row.class_name for row in modules]),
        "n_params": (
            numbers("parameter elements, children included"),
            [row.n_params for row in modules],
        ),
        "n_own_params": (
            numbers("parameter elements of its own"),
            [row.n_own_params for row in modules],
        ),
        "parent": (numbers("row of the parent"), [row.parent for row in modules]),
    }


def event_columns(events: Sequence[Event]) -> dict[str, Column]:
    """The columns of ``events/``."""
    step = _numbers("event", {"units": "1", "long_name": "optimizer step"})
    return {
        "step": (step, [event.step for event in events]),
        "time": (_numbers("event", TIME_ATTRS), [event.time_ms for event in events]),
        "kind": (text_spec("event", "kind"), [event.kind for event in events]),
        "text": (text_spec("event", "text"), [event.text for event in events]),
    }


def write_table(arrays: Arrays, path: str, columns: Mapping[str, Column]) -> None:
    """Write a whole table."""
    arrays.nodes.group(path)
    for name, (spec, values) in columns.items():
        arrays.write_whole(f"{path}/{name}", spec, values)


def read_modules(manifest: Manifest) -> tuple[ModuleRow, ...]:
    """The rows of ``modules/``."""
    names = ("module", "class", "n_params", "n_own_params", "parent")
    return tuple(map(ModuleRow, *_columns(manifest, "modules", names)))


def read_events(manifest: Manifest) -> tuple[Event, ...]:
    """The rows of ``events/``."""
    return tuple(map(Event, *_columns(manifest, "events", ("step", "time", "kind", "text"))))


def _columns(manifest: Manifest, table: str, names: Sequence[str]) -> list[list[Any]]:
    """Columns of a table as Python's own values; RecordFormatError when they are others."""
    arrays = [manifest.array(f"{table}/{name}") for name in names]
    known = _KNOWN_COLUMNS[table]
    length = next(iter(arrays[0].shape), None)
    for name, array in zip(names, arrays, strict=True):
        array.expect(known[name].dtype, known[name].dims, (length,))
        check_length(array, MOST_NAMES)
    return [array[:].tolist() for array in arrays]


def _numbers(dim: str, attrs: Mapping[str, str]) -> ArraySpec:
    return ArraySpec("int64", (dim,), (NAMES_CHUNK,), attrs)


_KNOWN_COLUMNS = {
    "modules": {name: spec for name, (spec, _) in module_columns([]).items()},
    "events": {name: spec for name, (spec, _) in event_columns([]).items()},
}
