"""Probes that should fire and do not: an alert for each reason."""

from __future__ import annotations

import weakref
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import islice

from notebook_probe.alerts import Rule
from notebook_probe.alerts.track import Onset
from notebook_probe.probes.reading.plan import is_of_calls
from notebook_probe.probes.step.probe import Probe
from notebook_probe.run.health.status import NOT_INSIDE, ROOT_INSIDE, ProbeStatus
from notebook_probe.run.health.why_silent import PERHAPS_UNUSED, UNCALLED
from notebook_probe.schedules import can_foresee

__all__ = ["StaleProbes"]


class StaleProbes:
    """Counter of the due steps since a probe last had a new value."""

    def __init__(self) -> None:
        # Weak keys: a detached probe must not stay in memory.
        self._seen: weakref.WeakKeyDictionary[Probe, tuple[int, int]] = weakref.WeakKeyDictionary()

    def look(
        self, probes: Iterable[Probe], statuses: Iterable[ProbeStatus], step: int, rule: Rule
    ) -> Iterator[Onset]:
        """Yield one finding for all probes that are silent for the same reason.

        Parameters
        ----------
        step : int
            The one that is open.
        rule : Rule
            The threshold ``due`` is the number of due steps without a value.
        """
        most = int(rule.thresholds["due"])
        silent: defaultdict[str, list[ProbeStatus]] = defaultdict(list)
        asked_for: set[str] = set()
        both = tuple(zip(probes, statuses, strict=True))
        used = {status.module for _, status in both if status.n_values}
        # If no probe of calls has a value, the model itself is not called, and nothing is left out.
        is_called = any(status.n_values and is_of_calls(probe) for probe, status in both)
        for probe, status in both:
            if is_called and probe.of_preset and _was_never_called(status):
                continue  # a layer that the forward does not use, and that no user selected
            n_values, since = self._seen.setdefault(probe, (status.n_values, step))
            if n_values != status.n_values:
                self._seen[probe] = status.n_values, step
            elif _says_why(probe, status, used) and _has_missed(probe, since, step, most):
                silent[status.note].append(status)
                if not probe.of_preset:
                    asked_for.add(status.note)
        trains = any(s.n_values and not s.note and not is_of_calls(p) for p, s in both)
        for note, ones in silent.items():
            names = ", ".join(dict.fromkeys(one.quantity for one in ones))
            modules = tuple(dict.fromkeys(one.module for one in ones))
            sentence = rule.says.format(names=names, missed=most, note=note)
            # Parameters that are trained by functional_call, or in a copy, need no calls here. And
            # a preset is not asked for what no graph can measure.
            is_usual = note.startswith("not called") or note in (NOT_INSIDE, ROOT_INSIDE)
            may_be_meant = trains and note not in asked_for and is_usual
            yield Onset(step, modules, sentence, (step, step), "remark" if may_be_meant else None)


def _was_never_called(status: ProbeStatus) -> bool:
    return status.note in PERHAPS_UNUSED and not status.n_values


def _says_why(probe: Probe, status: ProbeStatus, used: set[str]) -> bool:
    """Return whether it is silent although there is something to measure.

    A module that is not called while its weights are used, as the last one of torch's own
    multi-head attention, is no problem.
    """
    if status.waits or probe.phase != "training":
        return False
    if not status.n_values:
        return status.note in UNCALLED - (PERHAPS_UNUSED if status.module in used else set())
    return bool(status.note)


def _has_missed(probe: Probe, since: int, step: int, most: int) -> bool:
    """Return whether it was due that often from ``since`` to the last closed step."""
    # A stretched probe is measured at one of `every` due steps.
    n_due = most * probe.every
    dues = list(islice(_dues(probe, max(since, probe.attached_step)), n_due))
    return len(dues) == n_due and dues[-1] < step


def _dues(probe: Probe, step: int) -> Iterator[int]:
    """Yield its due steps; none for a user's own function, which is never called in advance."""
    schedule = probe.armed
    if not can_foresee(schedule):
        return
    due = schedule.next_due(step)
    while due is not None:
        yield due
        due = schedule.next_due(due + 1)
