"""From the readings of a closed step to values: one per probe, or one per call of a probe."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from torch import Tensor

from notebook_probe.axis import Image
from notebook_probe.probes.reading.cells import NOTHING_COMMON
from notebook_probe.probes.step.frame import StepFrame
from notebook_probe.probes.step.measured import POOLED
from notebook_probe.probes.step.probe import Probe
from notebook_probe.quantities.define.numbers import COMBINE
from notebook_probe.quantities.define.quantity import Quantity

__all__ = [
    "CellSource",
    "Count",
    "DerivedSource",
    "EachSource",
    "FunctionResult",
    "ParametersResult",
    "Result",
    "StateSource",
    "SummaryResult",
]

Values: TypeAlias = "Sequence[tuple[int, Any]]"


class Result(Protocol):
    """How one probe's values are made."""

    probe: Probe

    def values(self, frame: StepFrame) -> Values:
        """``(call, value)`` of a step; empty where there is a gap."""


class StateSource(Protocol):
    """Where a step's state of one feature comes from."""

    def state(self, frame: StepFrame) -> Any:
        """What the step has of it, by call where calls are kept apart; None for a gap."""


@dataclass(frozen=True, slots=True)
class CellSource:
    """One feature's cells: several parameters make up a module's gradient."""

    indices: tuple[int, ...]

    def state(self, frame: StepFrame) -> Any:
        """What all its cells have measured together; None when none has."""
        state, states = None, frame.states
        for index in self.indices:
            other = states[index]
            if other is not None:
                state = other if state is None else state.merge(other)
        return None if state is NOTHING_COMMON else state


@dataclass(frozen=True, slots=True)
class EachSource:
    """One feature of every module below a place that owns parameters, in the model's order."""

    owners: tuple[StateSource, ...]

    def state(self, frame: StepFrame) -> Any:
        """A tuple with None for a module that has none; None when no module has."""
        states = tuple(owner.state(frame) for owner in self.owners)
        return None if all(state is None for state in states) else states


@dataclass(frozen=True, slots=True)
class Failed:
    """Stands where something could not be worked out, for each who asks to be told."""

    error: Exception


@dataclass(frozen=True, slots=True)
class DerivedSource:
    """What is worked out of a step's states, once for all who ask; each has a copy of his own."""

    index: int
    function: Callable[..., Any]
    sources: tuple[StateSource, ...]
    per_call: bool

    def state(self, frame: StepFrame) -> Any:
        """What the function returned; None where something is not there."""
        if frame.states[self.index] is None:
            frame.states[self.index] = self._tried(frame)
        known = frame.states[self.index]
        if isinstance(known, Failed):
            raise known.error
        if self.per_call and known is not None:
            return {call: _own(value) for call, value in known.items()}
        return _own(known)

    def _tried(self, frame: StepFrame) -> Any:
        try:
            states = [source.state(frame) for source in self.sources]
            if any(state is None for state in states):
                return None
            if not self.per_call:
                return self.function(*states)
            calls = [call for call in states[0] if all(call in state for state in states)]
            return {call: self.function(*[state[call] for state in states]) for call in calls}
        except Exception as error:  # whatever a user's reduction does
            return Failed(error)


def _own(value: Any) -> Any:
    """A copy of a tensor: what several are given none of them may write into."""
    return value.clone() if isinstance(value, Tensor) else value


@dataclass(slots=True)
class SummaryResult:
    """A function of summaries."""

    probe: Probe
    sources: tuple[StateSource, ...]

    def values(self, frame: StepFrame) -> Values:
        states = []
        try:
            if self.probe.per_call:
                return self._of_calls(frame)
            for source in self.sources:
                state = source.state(frame)
                if state is None:  # not called, no gradient, no update
                    return ()
                states.append(state)
        except Exception as error:  # states that nobody can pool: it is this probe's alone
            frame.blame(self.probe, error)
            return ()
        return self._computed(frame, states, POOLED)

    def _of_calls(self, frame: StepFrame) -> Values:
        states = [source.state(frame) or {} for source in self.sources]
        calls = [call for call in states[0] if all(call in state for state in states)]
        return [
            value
            for call in calls
            for value in self._computed(frame, [state[call] for state in states], call)
        ]

    def _computed(self, frame: StepFrame, states: list[Any], call: int) -> Values:
        quantity = self.probe.quantity
        try:
            value = quantity.function(*states)
            return ((call, value if type(value) is float else quantity.value_of(value)),)
        except Exception as error:  # a user's quantity must never reach training
            frame.blame(self.probe, error)
            return ()


@dataclass(slots=True)
class FunctionResult:
    """A function of the tensors themselves: its values of a step, combined."""

    probe: Probe
    index: int

    def values(self, frame: StepFrame) -> Values:
        calls = (frame.states[self.index] or {}).items()
        return [
            (call if self.probe.per_call else POOLED, _combined(self.probe.quantity, values))
            for call, values in calls
        ]


@dataclass(slots=True)
class ParametersResult:
    """A function of a parameter's tensors: its values of several parameters, combined."""

    probe: Probe
    indices: tuple[int, ...]

    def values(self, frame: StepFrame) -> Values:
        states = [frame.states[index] for index in self.indices]
        values = [value for state in states if state is not None for value in state[0]]
        return ((POOLED, _combined(self.probe.quantity, values)),) if values else ()


def _combined(quantity: Quantity, values: list[Any]) -> Any:
    combine = COMBINE[quantity.combine]
    if quantity.axis is None:
        return combine([float(value) for value in values])
    if isinstance(quantity.axis, Image):
        return np.asarray(values[-1])
    vectors = [np.asarray(value, np.float64) for value in values]
    alike = [vector for vector in vectors if len(vector) == len(vectors[-1])]
    columns = np.array(alike).T  # of calls that differ in length only the last kind counts
    return np.array([combine(column.tolist()) for column in columns])


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
