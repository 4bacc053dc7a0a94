"""The record: one run as an open, chunked zarr store. numpy, xarray and zarr only."""

from notebook_probe.record.format.source import (
    ROOT,
    Event,
    ModuleRow,
    Source,
    StreamView,
    Variable,
    VectorView,
)
from notebook_probe.record.read.reader import OpenedRecord, open_record
from notebook_probe.record.store.remote import store_schemes
from notebook_probe.record.write.streams.stream import StreamWriter
from notebook_probe.record.write.writer import RecordWriter

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
    "store_schemes",
]
