"""trackio: a SQLite file for each project, with all of its runs."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from notebook_probe.old_runs.formats.lines import milliseconds, step_of
from notebook_probe.old_runs.formats.old_format import OldFormat
from notebook_probe.old_runs.formats.sqlite_file import (
    has_columns,
    is_sqlite,
    opened_database,
    table_columns,
)
from notebook_probe.old_runs.points import Points
from notebook_probe.old_runs.run import OldRun

__all__ = ["TrackioFormat"]

NEEDED = {"run_name", "step", "timestamp", "metrics"}


class TrackioFormat(OldFormat):
    """Rows of JSON by run and step; newer files have an id for each run."""

    tool = "trackio"

    def in_file(self, path: Path, head: bytes) -> bool:
        return is_sqlite(head) and has_columns(path, "metrics", NEEDED)

    def keys(self, path: Path) -> tuple[str, ...]:
        with opened_database(path) as connection:
            column = _run_column(connection)
            found = connection.execute(
                f"SELECT run_name, {column}, MIN(rowid) FROM metrics GROUP BY 1, 2 ORDER BY 3"
            ).fetchall()
        names = [str(name) for name, _, _ in found]
        # The name if it names one run; else the id, which files without ids do not need.
        return tuple(
            str(name) if names.count(str(name)) == 1 else str(run_id) for name, run_id, _ in found
        )

    def read(self, files: Sequence[Path], key: str, points: Points) -> OldRun:
        path = files[0]
        with opened_database(path) as connection:
            column = _run_column(connection)
            where = f"WHERE run_name = ? OR {column} = ?"
            ask = f"SELECT step, timestamp, metrics, run_name, {column} FROM metrics {where}"
            name = run_id = key
            with points.reading(path.name):
                for step, at, metrics, name, run_id in connection.execute(  # noqa: B007
                    f"{ask} ORDER BY rowid", (key, key)
                ):
                    points.allowance.take_bytes(len(metrics))
                    number = step_of(step)
                    if number is not None:
                        points.add_all(_object(metrics), number, milliseconds(at))
            config, created = _config(connection, where, key)
        return OldRun(
            tool=self.tool,
            name=str(name),
            run_id=str(run_id) if column == "run_id" else "",
            series=points.series(),
            config=config,
            notes={"project": path.stem},
            created_ms=created,
        )


def _run_column(connection: sqlite3.Connection) -> str:
    has_ids = "run_id" in table_columns(connection, "metrics")
    return "run_id" if has_ids else "run_name"


def _config(connection: sqlite3.Connection, where: str, key: str) -> tuple[dict[str, Any], int]:
    """Return the settings of a run, and when it began."""
    columns = table_columns(connection, "configs")
    if not {"run_name", "config"} <= {*columns} or ("run_id" in where and "run_id" not in columns):
        return {}, 0
    found = connection.execute(f"SELECT config FROM configs {where}", (key, key)).fetchone()
    config = {} if found is None else _object(found[0])
    created = round(milliseconds(config.get("_Created", 0)))
    return {name: value for name, value in config.items() if not name.startswith("_")}, created


def _object(document: Any) -> dict[str, Any]:
    if not isinstance(document, str | bytes):
        return {}
    try:
        found = json.loads(document)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
