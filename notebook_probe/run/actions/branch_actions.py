"""Going back from a click: the loop says that it can, and a branch goes on as the run before."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from typing import cast

from notebook_probe.probes.step.probe import Probe
from notebook_probe.record.format.source import Source
from notebook_probe.record.read.reader import OpenedRecord
from notebook_probe.record.views.xarray_views import Snapshot
from notebook_probe.run.attach.denser import denser
from notebook_probe.run.attach.requests import Control, Set
from notebook_probe.run.breakpoints.conditions import AtStep
from notebook_probe.run.going_back.requests import GoBack
from notebook_probe.run.going_back.way_back import CanGoBack
from notebook_probe.run.parts import RunParts

__all__ = ["BranchActions"]


class BranchActions(ABC):
    """What the run of a branch takes over from the one that was left."""

    _parts: RunParts
    _left: Source | None = None
    _knows_left = False

    @property
    @abstractmethod
    def location(self) -> str:
        """Where the record is."""

    @abstractmethod
    def snapshot(self) -> Snapshot:
        """What is recorded, at one moment."""

    @property
    @abstractmethod
    def _live(self) -> RunParts:
        """The parts of the run; raises ClosedRunError once it is closed."""

    def goes_back_by(self, loop: CanGoBack) -> None:
        """Have the panel offer the way back; `notebook_probe.train.Loop` calls it by itself."""
        self._live.way_back.by(loop)

    @property
    def restores(self) -> str:
        """What is as it was where the loop goes back, in words; "" where it cannot."""
        return self._parts.way_back.restores

    @property
    def wanted_probes(self) -> list[Probe]:
        """What is measured, as probes."""
        return self._parts.probes.wanted

    @property
    def left(self) -> Source | None:
        """What was left for this branch: the run, or its record where another process trained it.

        None for what never went back.
        """
        if not self._knows_left:
            self._knows_left = True
            before = len(self.snapshot().branches.starts) - 1
            self._left = OpenedRecord(self.location, before) if before else None
        return self._left

    def goes_on(self, before: BranchActions) -> None:
        """End with the thread that trains ``before``, which was left for this one."""
        live, left = self._live, before._parts
        self._left, before._left = cast(Source, before), None  # which holds no older one
        self._knows_left = before._knows_left = True
        background = left.state.background
        if background is not None and background.running:
            left.gate.reached.reach(live.gate.step)
            live.gate.reached = left.gate.reached
            live.state.background, left.state.background = background, None
            stop = partial(live.put, Control("stop"))
            background.goes_on(live.end_loop, stop, live.loop_raised)

    def goes_on_alike(self, before: BranchActions) -> None:
        """Measure what ``before`` measured, held by what held it, with its rules."""
        live, left = self._live, before._parts
        for attachment in left.probes.attachments:
            live.probes.attach(attachment.resolver)
        wanted = {probe.key() for probe in left.probes.wanted}
        live.probes.detach([one for one in live.probes.wanted if one.key() not in wanted])
        for info in left.breakpoints.infos():
            live.breakpoints.edit(live.breakpoints.add(info.condition).id, armed=info.armed)
        for name in {*left.rules, *live.rules}:
            if name not in left.rules:
                del live.rules[name]
            elif left.rules[name] != live.rules.get(name):
                live.rules[name] = left.rules[name]

    def begin_as_asked(self, request: GoBack) -> None:
        """What is to be otherwise on the branch, from its first step on."""
        live = self._live
        attachment = denser(request, live.probes.model_map)
        if attachment is not None:
            live.probes.add(attachment)
        if request.rate is not None:
            live.put(Set("lr", request.rate))
        if request.hold_at is not None:
            live.breakpoints.add(AtStep(request.hold_at))
        live.change_between_steps()
