"""From the readings of a closed step to values: one per probe, or one per call of a probe."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from notebook_probe.probes.frame import StepFrame
from notebook_probe.probes.probe import Probe
from notebook_probe.quantities.combine import COMBINE

__all__ = ["POOLED", "Count", "FunctionResult", "Result", "Source", "SummaryResult"]

POOLED = -1
"""The call number of a value that stands for a whole step."""


class Result(Protocol):
    """How one probe's values are made."""

    probe: Probe

    def values(self, frame: StepFrame) -> Iterator[tuple[int, Any]]:
        """``(call, value)`` of a step; nothing where there is a gap."""


@dataclass(frozen=True, slots=True)
class Source:
    """One feature's cells: several parameters make up a module's gradient."""

    indices: tuple[int, ...]


@dataclass(slots=True)
class SummaryResult:
    """A function of summaries."""

    probe: Probe
    sources: tuple[Source, ...]

    def values(self, frame: StepFrame) -> Iterator[tuple[int, Any]]:
        if self.probe.per_call:
            yield from self._of_calls(frame)
            return
        states = frame.states
        given = []
        for source in self.sources:
            state = states[source.indices[0]] if source.indices else None
            for index in source.indices[1:]:
                other = states[index]
                if other is not None:
                    state = other if state is None else state.merge(other)
            if state is None:  # not called, no gradient, no update
                return
            given.append(state)
        yield from self._computed(frame, given, POOLED)

    def _of_calls(self, frame: StepFrame) -> Iterator[tuple[int, Any]]:
        states = [frame.states[source.indices[0]] or {} for source in self.sources]
        for call in states[0]:
            if all(call in state for state in states):
                yield from self._computed(frame, [state[call] for state in states], call)

    def _computed(self, frame: StepFrame, given: list[Any], call: int) -> Iterator[tuple[int, Any]]:
        try:
            value = self.probe.quantity.value_of(self.probe.quantity.function(*given))
        except Exception as error:  # a user's quantity must never reach training
            frame.blame(self.probe, error)
        else:
            yield call, value


@dataclass(slots=True)
class FunctionResult:
    """A function of the tensors themselves: its values of a step, combined."""

    probe: Probe
    index: int

    def values(self, frame: StepFrame) -> Iterator[tuple[int, Any]]:
        quantity = self.probe.quantity
        combine = COMBINE[quantity.combine]
        for call, values in (frame.states[self.index] or {}).items():
            key = call if self.probe.per_call else POOLED
            if quantity.axis is None:
                yield key, combine([float(value) for value in values])
            else:
                columns = np.array([np.asarray(value, np.float64) for value in values]).T
                yield key, np.array([combine(column.tolist()) for column in columns])


@dataclass(frozen=True, slots=True)
class Count:
    """How often a place was called in a step, or its gradient accumulated; recorded beside.

    A graph that is gone through backward twice counts twice: its gradients are pooled over both.
    """

    stream: str
    variable: str
    place: str
    indices: tuple[int, ...]

    def of(self, frame: StepFrame) -> int:
        return max((max(frame.calls[i], frame.arrivals[i]) for i in self.indices), default=0)
