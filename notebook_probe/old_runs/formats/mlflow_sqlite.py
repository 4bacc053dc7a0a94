"""MLflow's SQLite store: ``mlflow.db`` with all experiments and runs."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from notebook_probe.errors import RecordFormatError
from notebook_probe.old_runs.formats.lines import step_of
from notebook_probe.old_runs.formats.old_format import OldFormat
from notebook_probe.old_runs.formats.sqlite_file import (
    has_columns,
    is_sqlite,
    opened_database,
)
from notebook_probe.old_runs.points import Points, number_of
from notebook_probe.old_runs.run import OldRun

__all__ = ["MlflowSqliteFormat", "ended_well", "setting"]

WORDS = {"True": True, "False": False, "None": None}
MOST_TEXTS = 10_000
LARGEST = 1.7976931348623157e308
"""MLflow stores an infinity as the largest finite number."""
NEEDED = {"key", "value", "timestamp", "run_uuid", "step", "is_nan"}


class MlflowSqliteFormat(OldFormat):
    """Tables of runs, metrics, params and tags; runs are named by their ids."""

    tool = "MLflow"

    def in_file(self, path: Path, head: bytes) -> bool:
        return is_sqlite(head) and has_columns(path, "metrics", NEEDED)

    def keys(self, path: Path) -> tuple[str, ...]:
        with opened_database(path) as connection:
            found = connection.execute(
                "SELECT run_uuid FROM runs WHERE lifecycle_stage IS NOT 'deleted' "
                "ORDER BY start_time, rowid"
            ).fetchall()
        return tuple(str(run_id) for (run_id,) in found)

    def read(self, files: Sequence[Path], key: str, points: Points) -> OldRun:
        path = files[0]
        with opened_database(path) as connection:
            about = connection.execute(
                "SELECT name, status, start_time FROM runs WHERE run_uuid = ?", (key,)
            ).fetchone()
            if about is None:
                raise RecordFormatError(f"{path} has no run {key!r}")
            with points.reading(path.name):
                for name, value, time_ms, step, is_nan in connection.execute(
                    "SELECT key, value, timestamp, step, is_nan FROM metrics "
                    "WHERE run_uuid = ? ORDER BY key, step, timestamp",
                    (key,),
                ):
                    at, number = step_of(step), number_of(value)
                    if at is not None and number is not None:
                        points.add(str(name), at, time_ms or 0, _value(number, is_nan))
            params, tags = (_texts(connection, table, key) for table in ("params", "tags"))
        name, status, started = about
        notes = {name: value for name, value in tags.items() if not name.startswith("mlflow.")}
        return OldRun(
            tool=self.tool,
            name=str(name or tags.get("mlflow.runName") or key),
            run_id=key,
            series=points.series(),
            config={name: setting(text) for name, text in params.items()},
            notes={"tags": notes} if notes else {},
            created_ms=started if isinstance(started, int) else 0,
            has_ended=ended_well(str(status)),
        )


def ended_well(status: str) -> bool | None:
    """Return whether a run has ended well, by its status."""
    return {"FINISHED": True, "RUNNING": False, "FAILED": False, "KILLED": False}.get(status)


def _value(value: float, is_nan: object) -> float:
    if is_nan:
        return math.nan
    return math.copysign(math.inf, value) if abs(value) >= LARGEST else value


def _texts(connection: sqlite3.Connection, table: str, key: str) -> dict[str, str]:
    rows = connection.execute(f'SELECT key, value FROM "{table}" WHERE run_uuid = ?', (key,))
    return {str(name): str(value) for name, value in rows.fetchmany(MOST_TEXTS)}


def setting(text: str) -> Any:
    """Return a parameter, which MLflow stores as text, as what it was.

    Examples
    --------
    >>> [setting(text) for text in ("3", "1e-3", "True", "None", "SGD", "[1, 2]")]
    [3, 0.001, True, None, 'SGD', '[1, 2]']
    """
    if text in WORDS:
        return WORDS[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
