"""Check that the steps of stored rows grow from 0, on which all readers rely."""

from __future__ import annotations

import numpy as np

from notebook_probe.errors import RecordFormatError
from notebook_probe.record.format.chunks import FILL
from notebook_probe.record.format.source import Steps

__all__ = ["check_growing"]


def check_growing(place: str, steps: Steps) -> None:
    """Raise RecordFormatError unless steps grow from 0.

    Rows at the end without a step were removed by a writer since this commit was read.
    """
    there = np.flatnonzero(steps != FILL["int64"])
    known = steps[: there[-1] + 1] if len(there) else steps[:0]
    if len(known) and (known[0] < 0 or (known[1:] <= known[:-1]).any()):
        wrong = 0 if known[0] < 0 else int(np.argmax(known[1:] <= known[:-1])) + 1
        raise RecordFormatError(
            f"{place} has the step {known[wrong]} in row {wrong} of those read; steps grow from 0"
        )
