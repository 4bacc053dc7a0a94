"""State of one rank at some steps: what replicated modules have in common on all ranks."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["REPLICA", "Replica", "ReplicaState"]

REPLICA = "replica"
"""Attribute of a record in which its rank publishes what other ranks compare."""


@dataclass(frozen=True, eq=False)
class ReplicaState:
    """State before one step.

    Attributes
    ----------
    step : int
    time : float
        Seconds since the epoch.
    norms : array of float
        Norm of each weight, in the order of `Replica.names`.
    rates : tuple of float
        Learning rates of all optimizers.
    """

    step: int
    time: float
    norms: npt.NDArray[np.float64]
    rates: tuple[float, ...]

    def to_json(self) -> list[Any]:
        """Return values of JSON; norms are exact."""
        norms = base64.b64encode(self.norms.astype("<f8").tobytes()).decode()
        return [self.step, self.time, norms, [*self.rates]]

    @classmethod
    def from_json(cls, given: Sequence[Any]) -> ReplicaState:
        """Return the replica of a text that `to_json` made."""
        step, time, norms, rates = given
        numbers = np.frombuffer(base64.b64decode(norms), "<f8").astype(np.float64)
        return cls(int(step), float(time), numbers, tuple(map(float, rates)))


@dataclass(frozen=True, eq=False)
class Replica:
    """Published state of one rank.

    Attributes
    ----------
    names, dtypes : tuple of str
        Path and type of each weight that all ranks should have.
    sizes : tuple of int
        Number of elements of each.
    states : tuple of ReplicaState
        States at the first steps and at the last ones.
    step : int
        Open step.
    since : float
        Time at which it was first seen open.
    has_called_wrapper : bool or None
        True if the wrapper that averages gradients has made all calls that were looked at; None if
        it has made none.
    host : str
        Name of the machine.
    waits_in : str
        Collective in which it has been for a while; empty if it is in none.
    """

    names: tuple[str, ...]
    dtypes: tuple[str, ...]
    sizes: tuple[int, ...]
    states: tuple[ReplicaState, ...]
    step: int
    since: float
    has_called_wrapper: bool | None
    host: str
    waits_in: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return values of JSON."""
        return {
            "names": [*self.names],
            "dtypes": [*self.dtypes],
            "sizes": [*self.sizes],
            "states": [one.to_json() for one in self.states],
            "step": self.step,
            "since": self.since,
            "has_called_wrapper": self.has_called_wrapper,
            "host": self.host,
            "waits_in": self.waits_in,
        }

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Replica:
        """Read what `to_json` returned; any error if it is something else."""
        return cls(
            names=tuple(map(str, given["names"])),
            dtypes=tuple(map(str, given["dtypes"])),
            sizes=tuple(map(int, given["sizes"])),
            states=tuple(map(ReplicaState.from_json, given["states"])),
            step=int(given["step"]),
            since=float(given["since"]),
            has_called_wrapper=given["has_called_wrapper"],
            host=str(given["host"]),
            waits_in=str(given.get("waits_in", "")),
        )
