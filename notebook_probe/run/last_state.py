"""Last state of a run, for probes that were due at a last step which was not announced."""

from __future__ import annotations

from notebook_probe.probes.observer import Observer
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities.reduce.features import ANYTIME
from notebook_probe.run.attach.probe_set import ProbeSet
from notebook_probe.run.backfill import PastSteps

__all__ = ["read_last_state"]


def read_last_state(observer: Observer, probes: ProbeSet, past: PastSteps) -> None:
    """Read the weights after the last update; report values of the step itself as lost.

    The state after n updates has step n; a training that continues there overwrites it.
    """
    step = observer.clock.step
    if observer.steps.is_silent or observer.training.last_step != step - 1:
        return
    owed = probes.owed(step - 1)
    states = [probe for probe in owed if _is_of_state(probe)]
    if states:
        past.keep(observer.steps.read_state(states))
    lost = [probe for probe in owed if not _is_of_state(probe)]
    if lost:
        probes.missed(lost, step)


def _is_of_state(probe: Probe) -> bool:
    """Return whether it needs nothing that exists only within a step."""
    return set(probe.quantity.needs) <= ANYTIME and not probe.quantity.spans_steps
