"""An old run as a record: the one place where what a reader returns becomes what is opened."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from zarr.abc.store import Store
from zarr.core.buffer import cpu
from zarr.core.sync import sync
from zarr.storage import MemoryStore

from notebook_probe.old_runs.images import OldImages, decoded_images
from notebook_probe.old_runs.naming import module_and_quantity
from notebook_probe.old_runs.notes import fitting, plain
from notebook_probe.old_runs.png import Pixels
from notebook_probe.old_runs.run import OldHistograms, OldRun, OldSeries
from notebook_probe.old_runs.tables import MOST_TABLES, OldTable, tables_of
from notebook_probe.record.format.loss_names import names_evaluation
from notebook_probe.record.format.missing import as_measured
from notebook_probe.record.format.notes import ANNOTATIONS, CONFIG, written_notes
from notebook_probe.record.format.schema import LOGGED_BY, NOT_READ
from notebook_probe.record.format.source import ModuleRow, Variable
from notebook_probe.record.format.summary import Summary, scalars_of
from notebook_probe.record.store.location import ROOT_KEY, Location, read_key
from notebook_probe.record.write.writer import RecordWriter

__all__ = ["as_store", "attrs_of", "is_open", "summary_of", "write_record"]

PIECE_BYTES = 4 << 20
"""Rows that are handed to the writer at once; it then writes them before it takes more."""


def as_store(run: OldRun, place: str, is_growing: bool) -> Store:
    """Return a record of the run in memory.

    Parameters
    ----------
    place : str
        Location of the run, for the record's attributes.
    is_growing : bool
        True while its files are written.
    """
    store = MemoryStore()
    write_record(run, store, place)
    if is_open(run, is_growing):
        root = json.loads(read_key(store, ROOT_KEY) or b"{}")
        root["attributes"]["state"] = "open"
        sync(store.set(ROOT_KEY, cpu.Buffer.from_bytes(json.dumps(root).encode())))
    return store


def is_open(run: OldRun, is_growing: bool) -> bool:
    """Return whether a run has not ended; if it does not say so, whether its files grow."""
    return is_growing if run.has_ended is None else not run.has_ended


def write_record(run: OldRun, location: Location, place: str) -> None:
    """Write a run as a new record.

    Raises
    ------
    RecordFormatError, RecordLockedError, RecordWriteError
        Something is there already, or it cannot be written.
    """
    tables, left_out = tables_of(run.series)
    remarks = [*run.remarks]
    if left_out:
        remarks.append(f"{left_out} series are left out: at most {MOST_TABLES} step axes are kept")
    images, n_images = decoded_images(run.images)
    if n_images:
        remarks.append(
            f"{n_images} images are left out: damaged, of another size than the first, or too many"
        )
    attrs = attrs_of(run, place)
    title = attrs.pop("title")
    of_tables = (module for table in tables for module in table.modules)
    modules = _module_rows([*of_tables, *(one.module for one in run.histograms if one.module)])
    with RecordWriter(location, title=title, modules=modules, attrs=attrs, resume=False) as writer:
        if remarks:
            writer.annotate(**{NOT_READ: remarks})
        for table in tables:
            _write(writer, table)
        for histograms in run.histograms:
            _write_histograms(writer, histograms)
        for found, pixels in images:
            _write_images(writer, found, pixels)


def attrs_of(run: OldRun, place: str) -> dict[str, str]:
    """Return the attributes of the record of a run."""
    notes = {"tool": run.tool, "original": place, **run.notes}
    return {
        "title": run.name or Path(place).stem,
        "run_id": run.run_id or f"{run.tool}:{place}",
        "created": _date(run.created_ms or _first_ms(run.series)),
        CONFIG: written_notes(CONFIG, fitting(plain(run.config))),
        ANNOTATIONS: written_notes(ANNOTATIONS, fitting(plain(notes))),
    }


def summary_of(run: OldRun, n_bytes: int) -> Summary:
    """Return the summary that the record of a run would have, without making the record."""
    summary = Summary(updated_ms=run.updated_ms, size_bytes=n_bytes)
    arrays: list[OldHistograms | OldImages] = [*run.histograms, *run.images]
    summary = summary.with_ends([(int(one.steps[-1]) + 1, 0) for one in arrays])
    for one in run.series:
        of_states = names_evaluation(one.name)
        summary = summary.with_ends([(int(one.steps[-1]) + (not of_states), 0)])
        if module_and_quantity(one.name) is None:
            values = as_measured(one.values[:, None])
            found = scalars_of([one.name], one.steps, values)
            summary = summary.with_scalars(found, of_states=of_states)
    return summary


def _write(writer: RecordWriter, table: OldTable) -> None:
    """Write the rows of a table, in pieces that the writer has room for."""
    if table.quantities:
        stream = writer.stream(table.stream, "as logged")
        stream.extend(table.modules, [Variable(one, "1", LOGGED_BY) for one in table.quantities])
    else:
        stream = writer.named(table.stream)
        stream.extend(table.names)
    piece = max(1, PIECE_BYTES // (4 * table.width))
    for start in range(0, len(table.steps), piece):
        rows = slice(start, start + piece)
        stream.record_all(table.steps[rows], table.times_ms[rows], table.values(rows))
        if start + piece < len(table.steps):
            writer.flush_or_raise(60.0)


def _write_histograms(writer: RecordWriter, found: OldHistograms) -> None:
    """Write histograms as arrays: left edges, right edges and counts."""
    long_name = f"histograms logged as {found.name}: left edges, right edges, counts"
    variable = Variable(found.quantity, "1", long_name)
    arrays = writer.arrays(variable, found.module, found.bins.shape[1:])
    piece = max(1, PIECE_BYTES // (4 * found.bins[0].size))
    for row, bins in enumerate(found.bins):
        arrays.record(int(found.steps[row]), int(found.times_ms[row]), bins)
        if row % piece == piece - 1:
            writer.flush_or_raise(60.0)


def _write_images(writer: RecordWriter, found: OldImages, pixels: Mapping[int, Pixels]) -> None:
    """Write images as arrays of bytes: gray ones, or with three or four channels."""
    shape = next(iter(pixels.values())).shape
    arrays = writer.arrays(Variable(found.quantity, "1", f"logged as {found.name}"), "", shape)
    piece = max(1, PIECE_BYTES // (4 * math.prod(shape)))
    for n, (row, values) in enumerate(pixels.items()):
        arrays.record(int(found.steps[row]), int(found.times_ms[row]), values.astype(np.float32))
        if n % piece == piece - 1:
            writer.flush_or_raise(60.0)


def _module_rows(modules: Iterable[str]) -> list[ModuleRow]:
    """Return a table of these modules and those above them; empty without any."""
    names = dict.fromkeys(above for module in modules for above in _path_to(module))
    rows = {name: row for row, name in enumerate(names)}
    return [
        ModuleRow(name, "", 0, 0, rows[name.rpartition(".")[0]] if name else -1) for name in names
    ]


def _path_to(module: str) -> Iterator[str]:
    """Yield the root, the modules above a module, and itself."""
    yield ""
    parts = module.split(".")
    for n in range(1, len(parts) + 1):
        yield ".".join(parts[:n])


def _first_ms(series: Iterable[OldSeries]) -> int:
    known = (one.times_ms[one.times_ms > 0] for one in series)
    return min((int(times.min()) for times in known if len(times)), default=0)


def _date(time_ms: int) -> str:
    """Return a time as text; empty if unknown."""
    if time_ms <= 0:
        return ""
    try:
        return datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return ""
