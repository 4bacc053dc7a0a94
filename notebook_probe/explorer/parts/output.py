"""The last lines that a training has printed, while a view shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, Protocol, TypedDict, runtime_checkable

from notebook_probe.explorer.parts.part import Part, Seen
from notebook_probe.record.views.printed_lines import PrintedLine, printed_lines
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.run.controls import Controls

__all__ = ["OutputKeep", "OutputPart", "OutputShow"]

MOST_LINES = 200


class OutputKeep(TypedDict):
    """Keep the output from now on."""

    v: int
    type: Literal["keep_output"]


class OutputShow(TypedDict):
    """Send the lines, or send them no more: no view shows them."""

    v: int
    type: Literal["show_output"]
    on: bool


class LastLines(Protocol):
    """Kept lines of a run in this process."""

    @property
    def was_on(self) -> bool:
        """True if they are kept, or were."""
        ...

    @property
    def problem(self) -> str:
        """Stream that is not heard, as text; empty if both are."""
        ...

    def begin(self) -> None:
        """Keep them from now on."""

    def lines(self) -> Sequence[PrintedLine]:
        """Return the last ones."""
        ...


@runtime_checkable
class Printing(Protocol):
    """Controls of a run in this process."""

    @property
    def output(self) -> LastLines: ...


class OutputPart(Part):
    """Output of a run in this process; of another one what its record has of it."""

    name: ClassVar = "output"
    heard: ClassVar = {"keep_output": OutputKeep, "show_output": OutputShow}

    def __init__(self, source: RunSource, controls: Controls | None) -> None:
        super().__init__(source, controls)
        self._is_shown = False
        self._n_events, self._recorded = -1, list[PrintedLine]()

    def state(self, seen: Seen) -> Mapping[str, Any]:
        here = self._here
        recorded = self._of_record() if here is None or not here.was_on else []
        is_kept = bool(recorded) or (here is not None and here.was_on)
        lines = here.lines() if here is not None and here.was_on else recorded
        return {
            "live": here is not None and seen.head.state not in ("finished", "failed"),
            "kept": is_kept,
            "problem": "" if here is None else here.problem,
            "lines": [[line.step, line.text] for line in lines] if self._is_shown else [],
        }

    def hear(self, message: OutputKeep | OutputShow) -> None:
        if message["type"] == "show_output":
            self._is_shown = message["on"]
        elif (here := self._here) is not None:
            here.begin()

    @property
    def _here(self) -> LastLines | None:
        return self._controls.output if isinstance(self._controls, Printing) else None

    def _of_record(self) -> list[PrintedLine]:
        events = self._source.events
        if len(events) != self._n_events:
            self._n_events, self._recorded = len(events), printed_lines(events, MOST_LINES)
        return self._recorded
