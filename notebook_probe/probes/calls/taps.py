"""The taps of one model: which modules have one, and which are armed in the open step."""

from __future__ import annotations

import weakref
from collections.abc import Iterable

from torch import nn

from notebook_probe.model.map import ModelMap
from notebook_probe.probes.calls.tap import CallListener, Tap
from notebook_probe.probes.due.readings import Readings
from notebook_probe.probes.step.compiled import has_compiled

__all__ = ["Taps"]


class Taps:
    """Keeps a tap on every place that some probe reads, and arms those that are due.

    Parameters
    ----------
    listener : CallListener
        Told of calls; held weakly.

    Attributes
    ----------
    due : Readings or None
        What the taps are armed for.
    """

    def __init__(self, listener: CallListener) -> None:
        self.due: Readings | None = None
        self.is_static = False
        """Hooks stay where they are: a compiled model is guarded by their number."""
        self._evaluated: Readings | None = None
        self._everywhere = True
        self._listener = weakref.ref(listener)
        self._taps: dict[str, Tap] = {}
        self._in_evaluation: frozenset[str] = frozenset()
        self._map: ModelMap | None = None

    def set_places(
        self, model_map: ModelMap, training: Iterable[str], evaluation: Iterable[str]
    ) -> None:
        """Have a tap exactly at these modules' paths; all of them are to be armed then."""
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
            after[place] = old if keeps and old is not None else Tap(place, module, listener)
        self._taps = after  # replaced, not changed: a step may be opening on another thread
        self.due = self._evaluated = None
        for place, tap in before.items():
            if after.get(place) is not tap:
                tap.remove()

    def arm(self, due: Readings | None, everywhere: bool) -> None:
        """Read what is due in the open training step.

        With ``everywhere`` every tapped module's call is noticed: it may be the first of a step.
        """
        if due is not None and due is self.due and everywhere == self._everywhere:
            return
        self.due, self._everywhere = due, everywhere
        self._arm_all(self._taps)

    def arm_evaluation(self, due: Readings | None) -> None:
        """Read what is due in the evaluation that begins."""
        self._evaluated = due
        self._arm_all(self._in_evaluation & self._taps.keys())

    def _arm_all(self, places: Iterable[str]) -> None:
        armed = [("training", self.due), ("evaluation", self._evaluated)]
        due = [(phase, readings.calls) for phase, readings in armed if readings is not None]
        stays = self.is_static or has_compiled()
        for place in places:
            plans = {phase: calls[place] for phase, calls in due if place in calls}
            # The root's call arms its own tap, too late for a hook that is not there yet.
            sees_calls = self._everywhere or not place or place in self._in_evaluation
            self._taps[place].arm(plans, stays or sees_calls, stays)

    def remove(self) -> None:
        """Take every hook off the model."""
        taps, self._taps = self._taps, {}
        for tap in taps.values():
            tap.remove()

    def place_of(self, module: nn.Module) -> str | None:
        """The path of a module of this model, None for any other."""
        return self._map.path_of(module) if self._map is not None else None

    def last_call(self, place: str) -> int:
        """Step of the last call seen at a place while something was due there; -1 before any."""
        tap = self._taps.get(place)
        return tap.last_step if tap is not None else -1

    def was_cleared(self, place: str) -> bool:
        """Somebody else took our hooks off the module there."""
        tap = self._taps.get(place)
        return tap is not None and tap.was_cleared
