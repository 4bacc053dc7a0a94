"""JSON lines: an object per step or per call."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from notebook_probe.errors import RecordFormatError
from notebook_probe.old_runs.allowance import SpentError
from notebook_probe.old_runs.formats.lines import (
    STEP_NAMES,
    lines_of,
    milliseconds,
    step_column,
    step_of,
    time_column,
)
from notebook_probe.old_runs.formats.old_format import OldFormat
from notebook_probe.old_runs.points import Points
from notebook_probe.old_runs.run import OldRun

__all__ = ["JsonLinesFormat"]

FIRST_LINES = 3
"""Lines in which steps are looked for."""


class JsonLinesFormat(OldFormat):
    """Lines of JSON objects, with a key that counts steps."""

    tool = "JSON lines"

    def in_file(self, path: Path, head: bytes) -> bool:
        return path.suffix.lower() in (".jsonl", ".ndjson") and head.lstrip().startswith(b"{")

    def why_no_run(self, path: Path, head: bytes) -> str:
        lines = head.splitlines()
        complete = lines if head.endswith(b"\n") else lines[:-1]
        # A first line may hold the settings; steps start in a later one.
        has_steps = any(map(_has_step, complete[:FIRST_LINES] or lines))
        return "" if has_steps else _no_steps(path)

    def read(self, files: Sequence[Path], key: str, points: Points) -> OldRun:
        path = files[0]
        n, config = 0, {}
        with points.reading(path.name):
            for n, line in enumerate(lines_of(path, points), 1):
                row = _object(line, n)
                steps = step_column(row)
                step = None if steps is None else step_of(row.pop(steps))
                if step is None and n == 1:
                    config = row
                if step is not None:
                    times = time_column(row)
                    time_ms = 0.0 if times is None else milliseconds(row[times])
                    if time_ms and times is not None:
                        del row[times]
                    points.add_all(row, step, time_ms)
        series = points.series()
        if not series and not points.remarks:
            raise RecordFormatError(_no_steps(path))
        return OldRun(self.tool, path.stem, series=series, config=config)


def _no_steps(path: Path) -> str:
    names = ", ".join(STEP_NAMES)
    return f"{path}: no number at a step is in its first lines; one of {names} is expected in each"


def _has_step(line: bytes) -> bool:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return False
    name = step_column(row) if isinstance(row, dict) else None
    return name is not None and step_of(row[name]) is not None


def _object(line: str, n: int) -> dict[str, Any]:
    if not line.strip():
        return {}
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise SpentError(f"line {n} is not JSON") from error
    return row if isinstance(row, dict) else {}
