"""The two tables of a record: its modules, and what happened at which step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from notebook_probe.record.format.array_specs import (
    NAMES_CHUNK,
    STEP_ATTRS,
    TIME_ATTRS,
    ArraySpec,
    text_spec,
)
from notebook_probe.record.format.schema import module_label
from notebook_probe.record.format.source import Event, ModuleRow

__all__ = ["DETAIL", "TableColumn", "event_columns", "module_columns"]

DETAIL = "detail"
"""The column of ``events/`` that records of the first versions do not have."""

TableColumn: TypeAlias = tuple[ArraySpec, list[Any]]


def module_columns(modules: Sequence[ModuleRow]) -> dict[str, TableColumn]:
    """Return the columns of ``modules/``, one row per module in definition order."""

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
            numbers("parameter elements of the module itself"),
            [row.n_own_params for row in modules],
        ),
        "parent": (numbers("row of the parent"), [row.parent for row in modules]),
    }


def event_columns(events: Sequence[Event]) -> dict[str, TableColumn]:
    """Return the columns of ``events/``."""
    step = _numbers("event", STEP_ATTRS)
    return {
        "step": (step, [event.step for event in events]),
        "time": (_numbers("event", TIME_ATTRS), [event.time_ms for event in events]),
        "kind": (text_spec("event", "kind"), [event.kind for event in events]),
        "text": (text_spec("event", "text"), [event.text for event in events]),
        DETAIL: (text_spec("event", "JSON for programs"), [event.detail for event in events]),
    }


def _numbers(dim: str, attrs: Mapping[str, str]) -> ArraySpec:
    return ArraySpec("int64", (dim,), (NAMES_CHUNK,), attrs)
