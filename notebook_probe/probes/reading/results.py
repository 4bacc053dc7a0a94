"""Values from the readings of a closed step: one per probe, or one per call of a probe."""

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
    "AccumulationCount",
    "CallCount",
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
    """Protocol of the maker of one probe's values."""

    probe: Probe

    def values(self, frame: StepFrame) -> Values:
        """``(call, value)`` of a step; empty where there is a gap."""


class StateSource(Protocol):
    """Protocol of the source of a step's state of one feature."""

    def state(self, frame: StepFrame) -> Any:
        """Return the step's state, by call where calls are kept apart; None for a gap."""


@dataclass(frozen=True, slots=True)
class CellSource:
    """Cells of one feature: several parameters make up a module's gradient."""

    indices: tuple[int, ...]

    def state(self, frame: StepFrame) -> Any:
        """Merge the states of all its cells; None when none has one."""
        state, states = None, frame.states
        for index in self.indices:
            other = states[index]
            if other is not None:
                state = other if state is None else state.merge(other)
        return None if state is NOTHING_COMMON else state


@dataclass(frozen=True, slots=True)
class EachSource:
    """Source of one feature of every module below a place that owns parameters, in model order."""

    owners: tuple[StateSource, ...]

    def state(self, frame: StepFrame) -> Any:
        """Return a tuple with None for a module that has none; None when no module has."""
        states = tuple(owner.state(frame) for owner in self.owners)
        return None if all(state is None for state in states) else states


@dataclass(frozen=True, slots=True)
class Failed:
    """Marker for a failed derivation, whose error each reader receives."""

    error: Exception


@dataclass(frozen=True, slots=True)
class DerivedSource:
    """Derivation from a step's states, made once; each reader has its own copy."""

    index: int
    function: Callable[..., Any]
    sources: tuple[StateSource, ...]
    per_call: bool

    def state(self, frame: StepFrame) -> Any:
        """Return the function's result; None where something is missing."""
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
    """Return a copy of a tensor: what several are given none of them may write into."""
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
        except Exception as error:  # states that cannot be pooled: only this probe fails
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
        return combine([*map(float, values)])
    if isinstance(quantity.axis, Image):
        return np.asarray(values[-1])
    vectors = [np.asarray(value, np.float64) for value in values]
    alike = [vector for vector in vectors if len(vector) == len(vectors[-1])]
    columns = np.array(alike).T  # of calls that differ in length only the last kind counts
    return np.array([combine(column.tolist()) for column in columns])


class Count(Protocol):
    """The number of something at one place in a step, recorded with its values."""

    @property
    def stream(self) -> str: ...
    @property
    def variable(self) -> str: ...
    @property
    def place(self) -> str: ...

    def of(self, frame: StepFrame) -> int | None:
        """Return the number in a step; None if it is unknown."""


@dataclass(frozen=True, slots=True)
class CallCount:
    """Number of calls of a place."""

    stream: str
    variable: str
    place: str
    index: int
    may_be_unseen: Callable[[StepFrame], bool]
    """Function that returns whether a step without visible calls may have had some."""

    def of(self, frame: StepFrame) -> int | None:
        n_calls = frame.calls[self.index]
        return None if n_calls == 0 and self.may_be_unseen(frame) else n_calls


@dataclass(frozen=True, slots=True)
class AccumulationCount:
    """Number of accumulations at a place: of the parameter with the most."""

    stream: str
    variable: str
    place: str
    indices: tuple[int, ...]

    def of(self, frame: StepFrame) -> int | None:
        return max((frame.accumulations[i] for i in self.indices), default=0)
