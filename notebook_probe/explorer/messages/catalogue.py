"""The quantities that a panel lists, and what one probe of each costs here."""

from __future__ import annotations

import time
from collections.abc import Sequence

from notebook_probe.explorer.messages.tallies import rounded
from notebook_probe.record.format.source import Source
from notebook_probe.run.controls import Controls
from notebook_probe.run.health.status import QuantityInfo

__all__ = ["Catalogue"]

EVERY_S = 1.0


class Catalogue:
    """Of a live run what can be attached, asked for once a second; of a record what it holds."""

    def __init__(self, source: Source, controls: Controls | None) -> None:
        self._source, self._controls = source, controls
        self._rows: Sequence[QuantityInfo] = ()
        self._asked_s = -EVERY_S

    @property
    def rows(self) -> Sequence[QuantityInfo]:
        """Every quantity."""
        now_s = time.monotonic()
        if self._controls is None:
            self._rows = self._recorded()
        elif now_s - self._asked_s >= EVERY_S:
            self._rows, self._asked_s = self._controls.catalogue(), now_s
        return self._rows

    @property
    def costs(self) -> dict[str, float]:
        """Quantity to microseconds per step of one probe, where it is known."""
        return {row.name: rounded(row.cost_us) for row in self.rows if row.cost_us is not None}

    def _recorded(self) -> list[QuantityInfo]:
        streams = self._source.streams.values()
        found = {variable.name: variable for stream in streams for variable in stream.variables}
        return [
            QuantityInfo(name, variable.long_name, (), variable.units)
            for name, variable in found.items()
        ]
