"""Status of each probe: its last value, why it has none, and its cost."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Mapping

from torch import nn

from notebook_probe.model.map import ModelMap
from notebook_probe.model.selectors import standard_place
from notebook_probe.probes.observer import Observer
from notebook_probe.probes.step.probe import WAITING, Probe
from notebook_probe.run.health.status import ProbeStatus
from notebook_probe.run.health.why_silent import GONE, WhySilent, why_waiting

__all__ = ["ProbeStatuses"]


class ProbeStatuses:
    """Looks at the probes of one run; anyone may ask, at any time.

    Parameters
    ----------
    model : nn.Module
        Held weakly.
    observer : Observer
    why_silent : WhySilent
    """

    def __init__(self, model: nn.Module, observer: Observer, why_silent: WhySilent) -> None:
        # Weakly, so that an object that reports on the model does not keep it.
        self._model = weakref.ref(model)
        self._observer, self._why_silent = observer, why_silent
        self._last_notes: dict[Probe, str] = {}
        self._last_shares: dict[Probe, float] = {}

    def of(self, probes: Iterable[Probe], step: int) -> list[ProbeStatus]:
        """Every probe and what became of it."""
        costs, shares = self.costs(), self._shares()
        model_map, listed = self._observer.steps.model_map, list(probes)
        found = [self._status(probe, step, costs, shares, model_map) for probe in listed]
        if self._model() is not None:
            self._last_notes = {
                probe: status.note for probe, status in zip(listed, found, strict=True)
            }
        return found

    def costs(self) -> dict[Probe, float]:
        """Seconds per step."""
        return {**self._observer.training.costs(), **self._observer.evaluation.costs()}

    def _shares(self) -> dict[Probe, float]:
        """Shares of the time that the training took, over the same steps as `costs`.

        Evaluations are of that time, too. Right after a change they are those from before.
        """
        observer = self._observer
        wall_s = observer.training.wall_s
        if wall_s:
            spent = {**observer.training.seconds(), **observer.evaluation.seconds()}
            self._last_shares = {probe: seconds / wall_s for probe, seconds in spent.items()}
        return self._last_shares

    def _status(
        self,
        probe: Probe,
        step: int,
        costs: Mapping[Probe, float],
        shares: Mapping[Probe, float],
        model_map: ModelMap,
    ) -> ProbeStatus:
        """Return the status of one probe."""
        waiting = why_waiting(
            probe, step if probe.phase == "training" else self._observer.clock.upcoming
        )
        return ProbeStatus(
            module=standard_place(probe.place),
            quantity=probe.variable,
            schedule=str(probe.schedule),
            attached_step=step + 1 if probe.attached_step == WAITING else probe.attached_step,
            n_values=probe.n_values,
            last_step=probe.last_step,
            n_errors=probe.n_errors,
            error=probe.error,
            disabled=probe.disabled,
            note=waiting or self._note(probe, step, model_map),
            waits=bool(waiting),
            cost_us=1e6 * costs.get(probe, 0.0),
            cost_percent=100.0 * shares.get(probe, 0.0),
        )

    def _note(self, probe: Probe, step: int, model_map: ModelMap) -> str:
        """Return why a probe is silent; after the model is gone, the last known reason."""
        note = self._why_silent.note(probe, step, model_map)
        return self._last_notes.get(probe) or GONE if note == GONE else note
