"""Numbers of calls and accumulations, recorded with the values of a step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from notebook_probe.model.map import ModelMap
from notebook_probe.model.parameter_slots import Slot
from notebook_probe.probes.reading.plan import ReadingPlan
from notebook_probe.probes.reading.results import AccumulationCount, CallCount, Count
from notebook_probe.probes.step.compiled import UnseenCalls
from notebook_probe.probes.step.probe import Probe

__all__ = ["counts"]


def counts(
    due: Iterable[Probe],
    model_map: ModelMap,
    calls: Mapping[str, ReadingPlan],
    parameters: Mapping[Slot, ReadingPlan],
) -> list[Count]:
    """Return a count for each place and stream of the due probes, where there is any to count.

    Parameters
    ----------
    due : iterable of Probe
    model_map : ModelMap
    calls, parameters : mapping
        Readings at each place, once all plans have their counters.
    """
    found: dict[tuple[str, str, str], Count] = {}
    for probe in due:
        key = probe.stream, probe.count, probe.place
        if key in found:
            continue
        if probe.quantity.is_of_calls:
            plan = calls[probe.place]
            unseen = UnseenCalls(probe.place, model_map.by_every_path, plan.probes)
            found[key] = CallCount(*key, plan.counter, unseen)
        elif probe.accumulations:
            below = model_map.slots(probe.place, below=True)
            counters = [parameters[slot].counter for slot in below if slot in parameters]
            found[key] = AccumulationCount(*key, tuple(counters))
    return [*found.values()]
