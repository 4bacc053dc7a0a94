"""The record: one run as an open, chunked zarr store. numpy, xarray and zarr only."""

from notebook_probe.record.reader import OpenedRecord, open_record
from notebook_probe.record.source import (
    ROOT,
    Event,
    ModuleRow,
    Source,
    StreamView,
    Variable,
    VectorView,
)
from notebook_probe.record.stream import StreamWriter
from notebook_probe.record.writer import RecordWriter

__all__ = [
    "ROOT",
    "Event",
    "ModuleRow",
    "OpenedRecord",
    "RecordWriter",
    "Source",
    "StreamView",
    "StreamWriter",
    "Variable",
    "VectorView",
    "open_record",
]
