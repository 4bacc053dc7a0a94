"""Records made of tables, and the alerts of an oracle that goes through them value by value."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from hypothesis import HealthCheck, settings

from notebook_probe.alerts import Rule
from notebook_probe.record import ModuleRow, RecordWriter, Variable
from notebook_probe.record.format.missing import MEASURED_NAN, NOT_MEASURED

__all__ = ["GAP", "LAW", "NAN", "Table", "expected", "record", "writer_at"]

GAP, NAN = NOT_MEASURED, MEASURED_NAN
Table = npt.NDArray[np.float32]

LAW = settings(
    deadline=None, derandomize=True, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)


def writer_at(folder: Path, modules: Sequence[str] = ("fc",), **options: object) -> RecordWriter:
    rows = [ModuleRow("", "Net", 1, 0, -1), *(ModuleRow(m, "Linear", 1, 1, 0) for m in modules)]
    return RecordWriter(folder, title="run", modules=rows, flush_s=3600.0, **options)  # type: ignore[arg-type]


def record(
    writer: RecordWriter,
    tables: Mapping[str, object],
    modules: Sequence[str] = ("fc",),
    *,
    every: int = 1,
    first: int = 0,
) -> None:
    """Tables (row, module) of quantities, one row each ``every`` steps from ``first`` on."""
    stream = writer.stream(f"every_{every}")
    stream.extend(modules, [Variable(name) for name in tables])
    columns = [stream.module_index[module] for module in modules]
    given = {name: np.asarray(table, np.float32) for name, table in tables.items()}
    for row in range(len(next(iter(given.values())))):
        values = np.full(stream.shape, GAP, np.float32)
        for name, table in given.items():
            values[stream.variable_index[name], columns] = table[row]
        assert stream.record(first + row * every, 0, values)


def expected(
    rule: Rule,
    hits: Callable[[list[float]], bool],
    values: Table,
    steps: Sequence[int],
) -> set[tuple[int, int]]:
    """(step, module) of what is to be said, worked out one value at a time.

    ``hits`` is asked about each measured value with all rows up to it.
    """
    said = set()
    for module in range(values.shape[1]):
        held: list[int] = []
        quiet, told = 0, False
        for row, step in enumerate(steps):
            value = values[row, module]
            if value.view(np.uint32) == np.uint32(0x7FC00000):
                continue
            if not hits([float(one) for one in values[: row + 1, module]]):
                held, quiet = [], quiet + 1
                continue
            if not held and rule.again is not None and quiet >= rule.again:
                told = False
            held, quiet = [*held, step], 0
            if not told and len(held) >= rule.rows and step - held[0] >= rule.steps:
                told = True
                said.add((step, module))
    return said
