"""The taps of one model: which modules have one, and which are armed in the open step."""

from __future__ import annotations

import math
import weakref
from collections.abc import Collection, Iterable, Mapping

from torch import nn

from notebook_probe.model.map import ModelMap
from notebook_probe.probes.calls.static_hooks import StaticHooks
from notebook_probe.probes.calls.tap import CallListener, Tap
from notebook_probe.probes.due.readings import Readings
from notebook_probe.probes.inside.graph_readings import GraphReadings

__all__ = ["Taps"]


class Taps:
    """Taps at every place that a probe reads; those that are due are armed.

    Parameters
    ----------
    listener : CallListener
        Notified of calls; held weakly.
    in_graphs : GraphReadings
        Readings in compiled graphs.

    Attributes
    ----------
    due : Readings or None
        Readings for which the taps are armed.
    at_root : Readings or None
        The same if only calls of the root are noticed apart from it; None while they change.
    """

    def __init__(self, listener: CallListener, in_graphs: GraphReadings) -> None:
        self.due: Readings | None = None
        self.at_root: Readings | None = None
        self.is_static = False
        """Hooks stay where they are: a compiled model is guarded by their number."""
        self._static = StaticHooks()
        self._evaluated: Readings | None = None
        self._everywhere = self._is_armed = True
        self._stays = False
        """Hooks with nothing to do were left where they are."""
        self._listener, self._in_graphs = weakref.ref(listener), in_graphs
        self._taps: dict[str, Tap] = {}
        self._removed: dict[str, Tap] = {}
        """Taps of a run that is over: which calls they have seen is asked afterwards, too."""
        self._in_evaluation: frozenset[str] = frozenset()
        self._map: ModelMap | None = None

    def set_places(
        self, model_map: ModelMap, training: Iterable[str], evaluation: Iterable[str]
    ) -> None:
        """Put taps at exactly these modules' paths; `arm` is to be called afterwards."""
        listener = self._listener()
        if listener is None:
            return
        self._map, modules = model_map, model_map.by_every_path
        self._in_evaluation = frozenset(evaluation)
        before, after = self._taps, {}
        for place in dict.fromkeys((*training, *self._in_evaluation)):
            module, old = modules.get(place), before.get(place)
            if module is None:
                continue
            keeps = old is not None and old.module() is module
            after[place] = old if keeps and old is not None else self._new(place, module, listener)
        self._taps = after  # replaced, not changed: a step may be opening on another thread
        self._is_armed = False
        self.due = self.at_root = self._evaluated = None
        for place, tap in before.items():
            if after.get(place) is not tap:
                tap.remove()

    def _new(self, place: str, module: nn.Module, listener: CallListener) -> Tap:
        in_graph = self._in_graphs.tap(place, weakref.ref(module))
        return Tap(place, module, listener, in_graph)

    def arm(self, due: Readings | None, everywhere: bool) -> None:
        """Arm what is due in the open training step.

        With ``everywhere`` every tapped module's call is noticed: it may be the first of a step.
        """
        is_new = due is None or due is not self.due or everywhere != self._everywhere
        if is_new or not self._is_armed:
            changing = self._changing(due, everywhere)
            self._is_armed, self.at_root = False, None  # until it is done, which may be interrupted
            self.due, self._everywhere = due, everywhere
            self._arm_all(changing, self._stays)
            self._is_armed, self.at_root = True, None if everywhere else due

    def _changing(self, due: Readings | None, everywhere: bool) -> Collection[str]:
        """Return the places whose taps change: of modules that take turns these are few."""
        stayed, self._stays = self._stays, self.is_static or self._may_be_compiled()
        before, is_everywhere = self.due, everywhere or self._everywhere
        is_new = is_everywhere or not self._is_armed or stayed != self._stays
        if before is None or due is None or is_new:
            return self._taps.keys()
        return self._taps.keys() & {*before.calls, *due.calls}

    def arm_evaluation(self, due: Readings | None) -> None:
        """Arm the taps of the probes that are due in the evaluation that begins."""
        self._evaluated = due
        stays = self.is_static or self._may_be_compiled()
        self._arm_all(self._in_evaluation & self._taps.keys(), stays)

    def _arm_all(self, places: Iterable[str], stays: bool) -> None:
        # A model may be compiled at its first call, with the present hooks.
        stays |= self._everywhere and self._in_graphs.wanted
        armed = [("training", self.due), ("evaluation", self._evaluated)]
        due = [(phase, readings.calls) for phase, readings in armed if readings is not None]
        for place in places:
            plans = {phase: calls[place] for phase, calls in due if place in calls}
            # The root's call arms its own tap, too late for a hook that is not there yet.
            sees_calls = self._everywhere or not place or place in self._in_evaluation
            self._taps[place].arm(plans, stays or sees_calls, stays)

    def _may_be_compiled(self) -> bool:
        model = self._map.by_every_path.get("") if self._map is not None else None
        return self._static.may_be_compiled(model, self._last_seen)

    @property
    def stay(self) -> bool:
        """True if hooks stay where they are, as the model was perhaps compiled when they came."""
        return self.is_static or self._stays

    @property
    def may_be_compiled(self) -> bool:
        """True if the model may run compiled."""
        return self.stay or self._may_be_compiled()

    def called_in_graphs(self, places: Mapping[str, bool], step: int) -> None:
        """Note the places that graphs have read in a step, and which of them need a gradient."""
        for place, needs_gradient in places.items():
            if place in self._taps:
                self._taps[place].called_in_graph(step, needs_gradient)

    def _last_seen(self) -> int:
        """Return the step of the last call in which any hook ran; -1 if a graph has read since."""
        last = max((tap.last_step for tap in self._taps.values()), default=-1)
        # Taps know of what graphs have read, too, except of the open step.
        in_graphs = self._in_graphs.last_step
        return last if in_graphs < 0 or last > in_graphs + 1 else -1

    def remove(self) -> None:
        """Take every hook off the model."""
        taps, self._taps = self._taps, {}
        self._removed.update(taps)
        for tap in taps.values():
            tap.remove()

    def place_of(self, module: nn.Module) -> str | None:
        """Return the path of a module of this model, None for any other."""
        return self._map.path_of(module) if self._map is not None else None

    def last_call(self, place: str, before: float = math.inf) -> int:
        """Step of the last call seen at a place while something was due there; -1 without any.

        Only steps less than ``before`` count, which is the open step or none.
        """
        tap = self._known(place)
        if tap is None:
            return -1
        return tap.last_step if tap.last_step < before else tap.step_before

    def needs_gradient(self, place: str) -> bool:
        """Return whether the last output of a place requires a gradient; True if unknown."""
        tap = self._known(place)
        return tap is None or tap.needs_gradient

    def _known(self, place: str) -> Tap | None:
        return self._taps.get(place) or self._removed.get(place)

    def was_cleared(self, place: str) -> bool:
        """Return whether other code removed our hooks from the module there."""
        tap = self._taps.get(place)
        return tap is not None and tap.was_cleared
