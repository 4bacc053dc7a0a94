"""Schedule for every step, whose stream is in memory and not in the record."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FLIGHT", "IN_MEMORY"]

IN_MEMORY = "flight"
"""The name of the stream."""


@dataclass(frozen=True, slots=True)
class EachFlightStep:
    """Due at every step; its rows are kept by the flight recorder."""

    def __call__(self, step: int) -> bool:
        return True

    @property
    def stream(self) -> str:
        return IN_MEMORY

    def next_due(self, step: int) -> int | None:
        return step

    def __str__(self) -> str:
        return IN_MEMORY


FLIGHT = EachFlightStep()
