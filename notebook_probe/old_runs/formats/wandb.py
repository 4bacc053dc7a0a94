"""W&B: the file of a run, ``run-ID.wandb``, of offline runs and in the folder of others."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from notebook_probe.old_runs.formats.leveldb_log import entries_of, is_wandb
from notebook_probe.old_runs.formats.lines import milliseconds, step_of
from notebook_probe.old_runs.formats.old_format import OldFormat
from notebook_probe.old_runs.formats.protobuf import fields, signed, text
from notebook_probe.old_runs.formats.wandb_images import IMAGES, images_of
from notebook_probe.old_runs.histograms import MOST_BINS
from notebook_probe.old_runs.points import Points, number_of
from notebook_probe.old_runs.run import OldRun

__all__ = ["WandbFormat"]

HISTORY, CONFIG, ALERT, METRIC, RUN, EXIT = 2, 5, 10, 12, 17, 18
"""Fields of a record."""
COUNTS_STEPS = re.compile(r"(.*[/_])?(global_)?(step|steps|iter|iteration|update|updates)")
"""Step metrics that count steps; the others, such as epochs, are another axis."""
MOST_ALERTS = 100
DEEPEST = 16
HISTOGRAM = "histogram"
FILES = "files"


class WandbFormat(OldFormat):
    """A log of protocol buffers with checksums."""

    tool = "W&B"
    owns_folder = True

    def in_file(self, path: Path, head: bytes) -> bool:
        return is_wandb(head)

    def in_folder(self, folder: Path, names: Sequence[str]) -> tuple[Path, ...]:
        found = [name for name in names if name.endswith(".wandb")]
        return (folder / found[0],) if len(found) == 1 else ()

    def read(self, files: Sequence[Path], key: str, points: Points) -> OldRun:
        path, run = files[0], _Run(files[0].parent / FILES)
        with points.reading(path.name):
            for record in entries_of(path, points.allowance):
                for number, _, value in fields(record):
                    if isinstance(value, bytes):
                        run.take(number, value, points)
        notes = {name: value for name, value in run.notes.items() if value}
        return OldRun(
            tool=self.tool,
            name=run.name or run.run_id or path.stem,
            run_id=run.run_id,
            series=points.series(),
            config=run.config,
            notes=notes,
            created_ms=run.created_ms,
            has_ended=run.has_ended,
        )


@dataclass(slots=True)
class _Run:
    """State while the records are read in order."""

    files: Path
    """Folder of the media."""
    name: str = ""
    run_id: str = ""
    created_ms: int = 0
    has_ended: bool = False
    config: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    step_metrics: dict[str, str] = field(default_factory=dict)
    """Step metric by name; by a name that ends in ``*`` for all that start so."""
    last: dict[str, int] = field(default_factory=dict)
    """Last value of each step metric."""
    n_rows: int = 0

    def take(self, number: int, value: bytes, points: Points) -> None:
        """Take one record."""
        if number == HISTORY:
            self._log(value, points)
        elif number == CONFIG:
            self._configure(value)
        elif number == METRIC:
            found = _texts(value)
            self.step_metrics[found.get(1) or found.get(2, "")] = found.get(4, "")
        elif number == RUN:
            self._describe(value)
        elif number == ALERT and len(self.notes.setdefault("alerts", [])) < MOST_ALERTS:
            found = _texts(value)
            self.notes["alerts"].append(f"{found.get(1, '')}: {found.get(2, '')}")
        elif number == EXIT:
            code = next((signed(one) for place, _, one in fields(value) if place == 1), 0)
            self.notes["exit_code"] = code
            self.has_ended = code == 0

    def _describe(self, value: bytes) -> None:
        tags = []
        for number, _, one in fields(value):
            if number == 1:
                self.run_id = text(one)
            elif number == 3:
                self.notes["project"] = text(one)
            elif number == 4 and isinstance(one, bytes):
                self._configure(one)
            elif number == 8:
                self.name = text(one)
            elif number == 9:
                self.notes["notes"] = text(one)
            elif number == 10:
                tags.append(text(one))
            elif number == 17 and isinstance(one, bytes):
                seconds = next((signed(x) for place, _, x in fields(one) if place == 1), 0)
                self.created_ms = round(milliseconds(seconds))
        self.notes["tags"] = tags

    def _configure(self, value: bytes) -> None:
        for number, _, item in fields(value):
            if number == 1 and isinstance(item, bytes):
                keys, found = _item(item)
                if keys and not keys[0].startswith("_"):  # of W&B itself
                    _put(self.config, keys, found)

    def _log(self, value: bytes, points: Points) -> None:
        """Add a row of the history, each number at the step that its metric defines."""
        row: dict[str, Any] = {}
        step = None
        for number, _, one in fields(value):
            if number == 1 and isinstance(one, bytes):
                _put(row, *_item(one))
            elif number == 2 and isinstance(one, bytes):
                step = next((signed(x) for place, _, x in fields(one) if place == 1), 0)
        own = step_of(row.pop("_step", None))
        step = own if own is not None else self.n_rows if step is None else step
        self.n_rows += 1
        time_ms = milliseconds(row.pop("_timestamp", 0))
        row.pop("_runtime", None)
        flat = dict(_flat(row))
        for name in {*self.step_metrics.values()} & flat.keys():
            if (at := step_of(flat[name])) is not None:
                self.last[name] = at
        for name, one in flat.items():
            at = self._step_of(name, step)
            if isinstance(one, Mapping) and one.get("_type") in IMAGES:
                for n, encoded in enumerate(images_of(one, self.files)):
                    points.images.add(f"{name}_{n}" if n else name, at, time_ms, encoded)
            elif isinstance(one, Mapping):
                edges, counts = _histogram(one)
                points.histograms.add(name, at, time_ms, (edges[:-1], edges[1:]), counts)
            else:
                points.add_all({name: one}, at, time_ms)

    def _step_of(self, name: str, step: int) -> int:
        counts = self.step_metrics.get(name) or next(
            (
                counted
                for glob, counted in self.step_metrics.items()
                if glob.endswith("*") and name.startswith(glob[:-1])
            ),
            "",
        )
        return self.last.get(counts, step) if COUNTS_STEPS.fullmatch(counts) else step


def _item(item: bytes) -> tuple[Sequence[str], Any]:
    """Return the keys and the value of an item of a history or a config."""
    key, nested, value = "", [], None
    for number, _, one in fields(item):
        if number == 1:
            key = text(one)
        elif number == 2:
            nested.append(text(one))
        elif number == 16:
            value = _parsed(text(one))
    return [key] if key else nested[:DEEPEST], value


def _put(values: dict[str, Any], keys: Sequence[str], value: Any) -> None:
    """Put a value into nested dicts."""
    *above, last = keys or [""]
    for key in above:
        inner = values.get(key)
        if not isinstance(inner, dict):
            inner = values[key] = {}
        values = inner
    values[last] = value


def _parsed(document: str) -> Any:
    try:
        return json.loads(document)
    except (ValueError, RecursionError):
        return None


def _flat(row: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested dicts, histograms and images; other media are left out."""
    for key, value in row.items():
        name = f"{above}{key}"
        if not isinstance(value, Mapping) or value.get("_type") in (HISTOGRAM, *IMAGES):
            yield name, value
        elif "_type" not in value:
            yield from _flat(value, f"{name}/")


def _histogram(value: Mapping[str, Any]) -> tuple[Sequence[float], Sequence[float]]:
    """Return all edges and the counts; empty if they are damaged."""
    counts, edges, packed = (value.get(name) for name in ("values", "bins", "packedBins"))
    if isinstance(packed, Mapping):
        low, size, n = (number_of(packed.get(name)) for name in ("min", "size", "count"))
        if low is not None and size is not None and n is not None and 0 < n <= MOST_BINS:
            edges = [low + size * place for place in range(int(n) + 1)]
    if not isinstance(counts, list) or not isinstance(edges, list):
        return (), ()
    numbers = [[*map(number_of, each)] for each in (edges, counts)]
    if any(number is None for each in numbers for number in each):
        return (), ()
    return numbers[0], numbers[1]  # type: ignore[return-value]


def _texts(message: bytes) -> dict[int, str]:
    return {number: text(value) for number, _, value in fields(message)}
