"""Events that are marked on the step axis of the lines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from notebook_probe.record.format.source import Event

__all__ = ["MOST_EVENTS", "thinned_events"]

MOST_EVENTS = 200
"""Events of one kind: more marks cannot be distinguished on an axis."""


def thinned_events(events: Sequence[Event]) -> list[Event]:
    """Return at most 200 events of each kind, spread over all of that kind, in the same order.

    Kinds do not compete: epochs and checkpoints come by the hundred, and must not hide the one
    change that a user made.

    Examples
    --------
    >>> epochs = [Event(step, 0, "epoch", "") for step in range(1000)]
    >>> kept = thinned_events([*epochs[:500], Event(499, 0, "set", "lr=1"), *epochs[500:]])
    >>> len(kept), kept[0].step, kept[-1].step, [one.text for one in kept if one.kind == "set"]
    (201, 0, 999, ['lr=1'])
    """
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place, event in enumerate(events):
        places[event.kind].append(place)
    kept = [one for of_kind in places.values() for one in _spread(of_kind)]
    return [events[place] for place in sorted(kept)]


def _spread(places: list[int]) -> list[int]:
    if len(places) <= MOST_EVENTS:
        return places
    chosen = np.linspace(0, len(places) - 1, MOST_EVENTS).round().astype(int)
    return [places[one] for one in chosen]
