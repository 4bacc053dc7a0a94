"""CSV: a row per step or per call, as Lightning, Keras, fastai and people write it."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

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
from notebook_probe.old_runs.formats.plain_yaml import read_yaml
from notebook_probe.old_runs.points import Points
from notebook_probe.old_runs.run import OldRun

__all__ = ["CsvFormat", "LightningFormat"]

MOST_COLUMNS = 10_000


class CsvFormat(OldFormat):
    """A table with a header, and a column that counts steps."""

    tool = "CSV"

    def in_file(self, path: Path, head: bytes) -> bool:
        return path.suffix.lower() in (".csv", ".tsv") and b"\0" not in head

    def why_no_run(self, path: Path, head: bytes) -> str:
        first = head.partition(b"\n")[0].decode("utf-8-sig", errors="replace")
        names = _cells(first)
        return _no_steps(path, names) if step_column(names) is None else ""

    def read(self, files: Sequence[Path], key: str, points: Points) -> OldRun:
        read_table(files[0], points)
        return OldRun(self.tool, files[0].stem, series=points.series())


class LightningFormat(OldFormat):
    """Folder of Lightning's CSVLogger: ``metrics.csv``, and ``hparams.yaml`` with the settings."""

    tool = "Lightning"

    def in_folder(self, folder: Path, names: Sequence[str]) -> tuple[Path, ...]:
        found = [name for name in ("metrics.csv", "hparams.yaml") if name in names]
        return tuple(folder / name for name in found) if "metrics.csv" in found else ()

    def read(self, files: Sequence[Path], key: str, points: Points) -> OldRun:
        metrics, *settings = files
        read_table(metrics, points)
        config = read_yaml(settings[0], points) if settings else {}
        return OldRun(self.tool, metrics.parent.name, series=points.series(), config=config)


def read_table(path: Path, points: Points) -> None:
    """Read the numbers of a table; empty cells and text are no numbers.

    Raises
    ------
    RecordFormatError
        No column counts steps.
    """
    with points.reading(path.name):
        rows = _rows(path, points)
        header = [name.strip() for name in next(rows, [])][:MOST_COLUMNS]
        steps, times = step_column(header), time_column(header)
        if steps is None:
            raise RecordFormatError(_no_steps(path, header))
        at_step = header.index(steps)
        for row in rows:
            step = step_of(row[at_step]) if len(row) > at_step else None
            if step is None:
                continue
            cells = dict(zip(header, row, strict=False))
            time_ms = milliseconds(cells.get(times)) if times is not None else 0.0
            if time_ms and times is not None:
                del cells[times]
            _add(cells, steps, step, time_ms, points)


def _no_steps(path: Path, names: Sequence[str]) -> str:
    return (
        f"{path}: no column of {', '.join(map(repr, names[:8]))} counts steps; one of "
        f"{', '.join(STEP_NAMES)} is expected"
    )


def _add(cells: dict[str, str], steps: str, step: int, time_ms: float, points: Points) -> None:
    for name, text in cells.items():
        if name and name != steps and text and not text.isspace():
            try:
                value = float(text)
            except ValueError:
                continue
            points.add(name, step, time_ms, value)


def _rows(path: Path, points: Points) -> Iterator[list[str]]:
    lines = lines_of(path, points)
    first = next(lines, "")
    yield [*_cells(first)]
    reader = csv.reader(lines, delimiter=_delimiter(first))
    try:
        yield from reader
    except csv.Error as error:
        raise SpentError(f"line {1 + reader.line_num} is no CSV: {error}") from error


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=_delimiter(line)), [])
    except csv.Error:
        return []


def _delimiter(header: str) -> str:
    return max(",;\t", key=header.count)
