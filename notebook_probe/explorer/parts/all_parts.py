"""All parts of a panel: their news, their clicks, and the handlers of their messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from notebook_probe.errors import ClosedRunError
from notebook_probe.explorer.messages.frames import Frame
from notebook_probe.explorer.messages.wire import VERSION
from notebook_probe.explorer.parts.alert_rules import AlertRules
from notebook_probe.explorer.parts.breaks import Breaks
from notebook_probe.explorer.parts.compare import Compare
from notebook_probe.explorer.parts.examination import ExaminationPart
from notebook_probe.explorer.parts.graph import NetworkGraph
from notebook_probe.explorer.parts.hints import HintsPart
from notebook_probe.explorer.parts.history import CheckpointHistory
from notebook_probe.explorer.parts.knobs import Knobs
from notebook_probe.explorer.parts.looks import LooksPart
from notebook_probe.explorer.parts.messages import MessagesPart
from notebook_probe.explorer.parts.output import OutputPart
from notebook_probe.explorer.parts.panel_views import SavedViewsPart
from notebook_probe.explorer.parts.parent_branch import ParentBranch
from notebook_probe.explorer.parts.part import Click, Part, Seen
from notebook_probe.explorer.parts.probes import Probes
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.run.controls import Controls

__all__ = ["CLICKS", "PARTS", "RESTARTS", "SHAPES", "AllParts"]

PARTS: tuple[type[Part], ...] = (
    Breaks,
    Knobs,
    Probes,
    AlertRules,
    LooksPart,
    CheckpointHistory,
    ParentBranch,
    Compare,
    NetworkGraph,
    SavedViewsPart,
    MessagesPart,
    OutputPart,
    HintsPart,
    ExaminationPart,
)

CLICKS: Mapping[str, Click] = {kind: click for part in PARTS for kind, click in part.clicks.items()}
RESTARTS = frozenset(kind for kind, click in CLICKS.items() if click.restarts)
SHAPES: Mapping[str, type] = {
    **{kind: click.shape for kind, click in CLICKS.items()},
    **{kind: shape for part in PARTS for kind, shape in part.heard.items()},
}
"""Type of every message that a view may send to a part, to its typed dictionary."""


class AllParts:
    """Every part of one panel.

    Parameters
    ----------
    source : RunSource
    controls : Controls or None
    failed : callable
        Called with an exception and its place: a part that fails does not stop the others.
    """

    def __init__(
        self,
        source: RunSource,
        controls: Controls | None,
        failed: Callable[[Exception, str], None],
    ) -> None:
        self._parts = [part(source, controls) for part in PARTS]
        self._failed = failed
        self._sent: dict[str, Mapping[str, Any]] = {}

    @property
    def handlers(self) -> dict[str, Callable[[Any], None]]:
        """Handlers of the messages that are no requests, by type."""
        return {kind: part.hear for part in self._parts for kind in part.heard}

    def forget(self) -> None:
        """Send everything next: a new view has nothing."""
        self._sent.clear()
        for part in self._parts:
            part.forget()

    def news(self, seen: Seen) -> Iterator[Frame]:
        """Yield the messages that the views do not have yet, each with its buffers."""
        # One part that fails must not take the others with it.
        for part in self._parts:
            try:
                state, frames = part.state(seen), part.frames()
            except ClosedRunError:  # since it was asked how it does: the next refresh says so
                continue
            except Exception as error:  # a record may be on a disk that has gone
                self._failed(error, part.name)
                continue
            if state is not None and state != self._sent.get(part.name):
                self._sent[part.name] = state
                yield {"v": VERSION, "type": part.name, **state}, []
            yield from frames
