"""Base of the actions of a live run: its parts, which can be used until it is closed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from notebook_probe.errors import ClosedRunError
from notebook_probe.record.format.notes import MOST_BYTES, read_notes, written_notes
from notebook_probe.run.ending import Life
from notebook_probe.run.parts import RunParts

__all__ = ["LiveActions"]


class LiveActions:
    """Base of `Run` and of its `RunControls`.

    Parameters
    ----------
    name : str
    parts : RunParts
    life : Life
        Tells whether the run is closed.
    """

    def __init__(self, name: str, parts: RunParts, life: Life) -> None:
        self.name = name
        self._parts, self._life = parts, life

    @property
    def closed(self) -> bool:
        """True once the run is closed, by its owner or with its model."""
        return self._life.is_over

    @property
    def _live(self) -> RunParts:
        """The parts of the run; raises ClosedRunError once it is closed."""
        if self.closed:
            why = ", because its model no longer exists" if self._life.model_is_gone else ""
            raise ClosedRunError(
                f"run {self.name!r} is closed{why}; its record at {self._parts.source.location} "
                f"can still be read, and nbp.watch(model) begins another"
            )
        return self._parts

    def _add_notes(self, kind: str, notes: Mapping[str, Any], most: int = MOST_BYTES) -> None:
        """Add notes to those of a kind; a name again replaces its note."""
        writer = self._live.writer
        # Read and written whole: the record's root holds all notes of a kind as one attribute.
        known = read_notes(writer.attrs, kind)
        writer.annotate(**{kind: written_notes(kind, {**known, **notes}, most)})
