"""The table of the runs that a catalogue has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from notebook_probe.catalogues.documents import read_document
from notebook_probe.catalogues.marks import read as read_marks
from notebook_probe.opened import Lineage
from notebook_probe.record.read.reader import OpenedRecord

__all__ = ["Runs"]


class Runs(Lineage):
    """Runs that were recorded, a row each; what `Catalogue.runs` gives.

    Prints the columns in which runs differ, draws parallel coordinates by ``picture()``, and its
    ``explore()`` is a widget that opens the run of a clicked row.
    """

    def _read_row(self, record: OpenedRecord) -> Mapping[str, Any]:
        return {**read_document(record.location).row, **read_marks(record.location)}
