"""The quantities that a panel lists, what one probe of each costs here, and where they fit."""

from __future__ import annotations

from collections.abc import Sequence

from notebook_probe.explorer.messages.glyphs import vector_glyphs
from notebook_probe.explorer.messages.probe_rows import rounded
from notebook_probe.explorer.messages.throttled import Throttled
from notebook_probe.explorer.messages.vector_frames import Glyph
from notebook_probe.record.format.source import Source
from notebook_probe.run.controls import Controls
from notebook_probe.run.health.status import QuantityInfo

__all__ = ["PanelCatalogue"]


class PanelCatalogue:
    """Catalogue of quantities: attachable to a live run (read once a second), or recorded."""

    def __init__(self, source: Source, controls: Controls | None) -> None:
        self._source = source
        self._rows = Throttled(self._recorded if controls is None else controls.attachable)
        self._arrays = Throttled(lambda: [*source.blobs])
        self._costed: Sequence[QuantityInfo] = ()
        self._costs: dict[str, float] = {}

    @property
    def rows(self) -> Sequence[QuantityInfo]:
        """Every quantity."""
        return self._rows.value()

    @property
    def costs(self) -> dict[str, float]:
        """Quantity to microseconds per step of one probe, where it is known."""
        rows = self.rows
        if rows is not self._costed:
            known = ((row.name, row.cost_us) for row in rows)
            self._costs = {name: rounded(cost) for name, cost in known if cost is not None}
            self._costed = rows
        return self._costs

    @property
    def vectors(self) -> dict[str, Glyph]:
        """The recorded quantities whose values are vectors, and arrays, which have no sign."""
        arrays: dict[str, Glyph] = dict.fromkeys(self._arrays.value(), "")
        return vector_glyphs(self._source) | arrays

    def is_vector(self, quantity: str) -> bool:
        """Return whether a quantity is a vector or an image, also before anything is recorded."""
        listed = (row.value != "number" for row in self.rows if row.name == quantity)
        return quantity in self.vectors or any(listed)

    def _recorded(self) -> list[QuantityInfo]:
        streams = self._source.streams.values()
        found = {variable.name: variable for stream in streams for variable in stream.variables}
        return [
            QuantityInfo(name, variable.long_name, (), variable.units, usual=variable.usual)
            for name, variable in found.items()
        ]
