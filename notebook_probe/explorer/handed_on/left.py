"""History of a saved panel: the checkpoints, and the parent branch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from notebook_probe.explorer.draw.heat import Heat
from notebook_probe.explorer.draw.lines.lines import Lines
from notebook_probe.explorer.handed_on.coding import EXACT, coded
from notebook_probe.explorer.handed_on.frames import HEAT_BYTES, N_COLUMNS, whole, whole_lines
from notebook_probe.explorer.messages.selection import PanelSelection, Series
from notebook_probe.explorer.messages.wire import VERSION
from notebook_probe.explorer.parts.history import CheckpointHistory
from notebook_probe.explorer.parts.left_line import left_of, starts_of
from notebook_probe.explorer.parts.parent_branch import alerts_of, named, since
from notebook_probe.explorer.parts.part import Seen
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.run.controls import Controls

__all__ = ["SavedLeft"]


class SavedLeft:
    """The history of a source as a panel without a kernel shows it, which has no way back."""

    def __init__(self, source: RunSource, controls: Controls | None) -> None:
        self._source, self._controls = source, controls
        self._history = CheckpointHistory(source, controls)

    def messages(self, seen: Seen) -> Iterator[Mapping[str, Any]]:
        """Yield the history, and the alerts of the parent branch."""
        history = {**(self._history.state(seen) or {}), "way": None}
        yield {"v": VERSION, "type": "history", **history}
        yield {"v": VERSION, "type": "left", **alerts_of(self._left, self._source)}

    def heat(self, quantity: str, selection: PanelSelection) -> bytes | None:
        """Return the heat map of the parent branch; None if there is no parent branch."""
        left = self._left
        if left is None:
            return None
        frame = named("left_heat", Heat().frame(left, whole(selection, quantity), N_COLUMNS))
        return None if frame is None else coded(*frame, HEAT_BYTES)

    def lines(self, series: Sequence[Series], selection: PanelSelection) -> bytes | None:
        """Return the lines of the parent branch; None if there is no parent branch."""
        left = self._left
        if left is None:
            return None
        chosen = since(starts_of(self._source)[-1], whole(selection, ""))
        message, buffers = whole_lines(Lines(), left, series, chosen)
        return coded({**message, "type": "left_lines"}, buffers, [EXACT])

    @property
    def _left(self) -> RunSource | None:
        return left_of(self._source, self._controls)
