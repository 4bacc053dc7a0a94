"""One open step: what its taps have measured so far, and how that becomes one value per probe."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Container, Iterator
from typing import Any

from torch import Tensor

from notebook_probe.errors import QuantityError
from notebook_probe.probes.probe import Probe
from notebook_probe.quantities.base import TENSORS
from notebook_probe.quantities.stat import Number, Stat, root

__all__ = ["StepFrame"]


class StepFrame:
    """The readings of one step, pooled over calls, micro-batches and tensors.

    Parameters
    ----------
    step : int
        0-based: updates completed before this step's batch.
    due : tuple of Probe
        The probes that measure in this step; asked once, so that all taps agree.
    """

    __slots__ = (
        "_pools",
        "_stats",
        "begun",
        "closed",
        "due",
        "has_failures",
        "scalars",
        "seconds",
        "step",
        "time_ms",
    )

    def __init__(self, step: int, due: tuple[Probe, ...]) -> None:
        self.step = step
        self.due = due
        self.time_ms = time.time_ns() // 1_000_000
        self.begun = time.perf_counter()
        self.seconds = 0.0
        """Time spent in our own code during this step."""
        self.closed = False
        self.has_failures = False
        self.scalars: dict[str, Number] = {}
        """What the user logged."""
        self._stats: dict[tuple[str, str], dict[int, Stat]] = {}
        self._pools: dict[Probe, list[Number]] = {}

    def add_stat(self, place: str, tensor: str, stat: Stat) -> None:
        """Pool a reading with the earlier ones of the same tensor."""
        parts = self._stats.setdefault((place, tensor), {})
        parts[0] = parts[0].merge(stat) if parts else stat

    def set_stat(self, place: str, tensor: str, stat: Stat, part: int) -> None:
        """Replace one part's reading: a closure's later run, one optimizer of several."""
        self._stats.setdefault((place, tensor), {})[part] = stat

    def call(self, probe: Probe, **tensors: Tensor | None) -> None:
        """Call a probe's function on tensors and pool its value; an error is the probe's alone."""
        given = [tensors[feature.name] for feature in probe.quantity.features]
        present = [tensor.detach() for tensor in given if tensor is not None]
        if probe.disabled or len(present) < len(given):
            return
        begun = time.perf_counter()
        try:
            value = _scalar(probe, probe.quantity.function(*present))
        except Exception as error:  # a user's quantity must never reach training
            self._blame(probe, error)
        else:
            self._pools.setdefault(probe, []).append(value)
        probe.seconds += time.perf_counter() - begun

    def fail(self, place: str, error: Exception, tensors: Container[str] = TENSORS) -> None:
        """A reading of ``tensors`` at ``place`` failed: the error of the probes due there."""
        for probe in self.due:
            if probe.place == place and any(need in tensors for need in probe.quantity.needs):
                self._blame(probe, error)

    def _blame(self, probe: Probe, error: Exception) -> None:
        probe.failed(error, self.step)
        self.has_failures = True

    def values(self) -> Iterator[tuple[Probe, Number]]:
        """One value per probe that has one."""
        stats = {key: _merged(parts) for key, parts in list(self._stats.items())}
        for probe in self.due:
            if probe.disabled:
                continue
            value = self._pooled(probe, stats) if probe.quantity.pools else self._combined(probe)
            if value is not None:
                yield probe, value

    def _pooled(self, probe: Probe, stats: dict[tuple[str, str], Stat]) -> Number | None:
        try:
            needed = [stats[probe.place, f.tensor] for f in probe.quantity.features]
        except KeyError:  # not called, no gradient, no update: a gap
            return None
        try:
            return _scalar(probe, probe.quantity.function(*needed))
        except Exception as error:  # as above
            self._blame(probe, error)
            return None

    def _combined(self, probe: Probe) -> Number | None:
        values = self._pools.get(probe)
        return _COMBINE[probe.quantity.combine](values) if values else None


def _merged(parts: dict[int, Stat]) -> Stat:
    first, *others = list(parts.values())
    for other in others:
        first = first.merge(other)
    return first


def _scalar(probe: Probe, value: Any) -> Number:
    """A number or a 0-d tensor, left on its device; anything else is the quantity's error."""
    if isinstance(value, Tensor):
        if value.numel() != 1 or value.is_complex():
            raise QuantityError(
                f"{probe.quantity.name} returned a tensor of shape {tuple(value.shape)} and "
                f"{value.dtype}; one real number is expected"
            )
        value = value.detach().reshape(())
        return value if value.device.type != "cpu" else float(value)
    try:
        return float(value)
    except (TypeError, ValueError):
        raise QuantityError(
            f"{probe.quantity.name} returned {type(value).__name__}; one real number is expected"
        ) from None


def _mean(values: list[Number]) -> Number:
    return sum(values) / len(values)


def _largest(values: list[Number]) -> Number:
    return max(values) if all(v == v for v in values) else math.nan  # NaN != NaN


def _smallest(values: list[Number]) -> Number:
    return min(values) if all(v == v for v in values) else math.nan


_COMBINE: dict[str, Callable[[list[Number]], Number]] = {
    "mean": _mean,
    "sum": sum,
    "max": _largest,
    "min": _smallest,
    "last": lambda values: values[-1],
    "rss": lambda values: root(sum(value * value for value in values)),
}
