"""End of a run so far, and the steps at which its series ended: between them values stand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from notebook_probe.record.format.schema import EVALUATION
from notebook_probe.record.format.source import Event, Source, Steps, StreamView

__all__ = ["RunExtent", "last_step_of"]

ALL_MODULES = None


@dataclass(frozen=True, slots=True)
class SeriesEnd:
    """Step from which quantities are no longer measured at some modules."""

    step: int
    places: Mapping[str, Sequence[str] | None] | None
    """Modules by quantity, `ALL_MODULES` for every module; None for everything in the record."""

    def ended(self, quantity: str, modules: Sequence[str]) -> list[int]:
        """Return the positions of the modules whose series of a quantity ends here."""
        if self.places is None:
            return [*range(len(modules))]
        if quantity not in self.places:
            return []
        places = self.places[quantity]
        if places is ALL_MODULES:
            return [*range(len(modules))]
        known = frozenset(places)
        # Calls and elements have separate columns: "cell[0]", "conv1[3/64]".
        return [
            k for k, name in enumerate(modules) if name in known or name.rpartition("[")[0] in known
        ]


@dataclass(frozen=True, slots=True)
class RunExtent:
    """Last step of a run so far, and the ends of series before it."""

    last_step: int
    turns_from: float
    """First step from which a budget may measure modules in turns; infinite if there is none."""
    ends: tuple[SeriesEnd, ...]

    @classmethod
    def of(cls, source: Source) -> RunExtent:
        """Read the extent of a source."""
        return cls.read(last_step_of(source.streams.values()), source.events)

    @classmethod
    def read(cls, last_step: int, events: Iterable[Event]) -> RunExtent:
        """Read it from the events of the line that leads to ``last_step``."""
        events = [*events]
        # The earliest event is enough: before it nothing was measured in turns.
        turns = [event.step for event in events if event.kind == "budget"]
        ends = tuple(end for event in events if (end := _series_end(event)) is not None)
        return cls(last_step, min(turns, default=np.inf), ends)

    def end_steps(self, quantity: str, modules: Sequence[str], until: Steps) -> Steps | None:
        """Return the last end of each series at or before steps; None if no series ended.

        Parameters
        ----------
        until : int array, (column,)

        Returns
        -------
        int array, (module, column)
            -1 where the series has not ended.
        """
        found = None
        for end in self.ends:
            rows = end.ended(quantity, modules)
            if not rows:
                continue
            if found is None:
                found = np.full((len(modules), len(until)), -1)
            at = np.where(until >= end.step, end.step, -1)
            found[rows] = np.maximum(found[rows], at)
        return found


def last_step_of(streams: Iterable[StreamView]) -> int:
    """Return the last step with a row; states are no steps of the training. -1 without rows."""
    trained = [one for one in streams if one.n_rows and not one.name.startswith(EVALUATION)]
    lasts = [int(one.steps(one.n_rows - 1, one.n_rows)[0]) for one in trained]
    return max(lasts, default=-1)


def _series_end(event: Event) -> SeriesEnd | None:
    if event.kind == "resume":  # everything measured from here on was attached again
        return SeriesEnd(event.step, None)
    if event.kind != "detach":
        return None
    places = _ended_in(event.detail)
    return SeriesEnd(event.step, _named_in(event.text) if places is None else places)


@lru_cache(maxsize=64)  # asked at each look
def _ended_in(detail: str) -> Mapping[str, Sequence[str] | None] | None:
    """Return the modules by quantity from the JSON of an event; None for an older record."""
    try:
        ended = json.loads(detail)["ended"]
        return {
            str(quantity): ALL_MODULES if places is None else [str(place) for place in places]
            for quantity, places in ended.items()
        }
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _named_in(text: str) -> Mapping[str, Sequence[str] | None]:
    """Return the modules by quantity from the sentence of an older record.

    It names six modules at most: if there were more, all of them count. One that is still attached
    is drawn again from its next value on.
    """
    names, _, rest = text.partition(" at ")
    places = rest.split(", ")
    named = ALL_MODULES if any(" more" in place for place in places) else places
    return dict.fromkeys(names.split(", "), named)
