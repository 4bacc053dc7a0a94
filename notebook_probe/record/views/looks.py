"""Stored looks: the tensors of a module at a step, with facts about them."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from types import MappingProxyType
from typing import Any, Self

import numpy as np
import xarray as xr

from notebook_probe.json_numbers import json_number
from notebook_probe.record.format.source import Event

__all__ = [
    "GONE",
    "LOOK",
    "MOST_LOOKS",
    "OF_MODULE",
    "Look",
    "TensorFacts",
    "detail_of",
    "every_look_of",
    "gone_detail",
    "looks_of",
    "without_gone",
]

LOOK = "look"
"""The kind of its event."""
GONE = "look_gone"
"""The kind of the event that one has made room for a later one."""
MOST_LOOKS = 64
"""Maximum number of looks in a record."""

OF_MODULE = ("weight", "grad", "update")
"""Tensors of a module without samples; all others have a batch axis, whatever their names."""

Blobs = Mapping[str, Mapping[str, xr.DataArray]]


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """Facts about a whole tensor, of which a part was stored.

    Attributes
    ----------
    shape : tuple of int
    dtype, device : str
    minimum, mean, maximum, std : float
        Statistics of the finite elements; NaN if there are none.
    zeros, nonfinite : int
        Elements that are zero, and that are NaN or infinite.
    every, along : int
        Interval of the kept elements along this dimension; 1 for all.
    """

    shape: tuple[int, ...]
    dtype: str
    device: str
    minimum: float
    mean: float
    maximum: float
    std: float
    zeros: int
    nonfinite: int
    every: int = 1
    along: int = 0

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            name: json_number(value) if isinstance(value, float) else value
            for name, value in asdict(self).items()
        }

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Self:
        """Return the facts from the result of `plain`."""
        known = {name: found.get(name) for name in cls.__slots__}
        numbers = {
            name: math.nan if known[name] is None else float(known[name])  # type: ignore[arg-type]
            for name in ("minimum", "mean", "maximum", "std")
        }
        shape = tuple(int(size) for size in found["shape"])
        return cls(**{**known, **numbers, "shape": shape})  # type: ignore[arg-type]


@dataclass(frozen=True, repr=False)
class Look:
    """The tensors of a module in one step.

    Attributes
    ----------
    module : str
    step : int
    facts : mapping of str to TensorFacts
        Facts by tensor: ``"input"``, ``"output"``, ``"grad_output"``, ``"weight"``, ``"grad"``,
        ``"update"``, ``"attention"``, if they were available; for a kept batch the names of the
        model's arguments, and ``"target"``.
    why : str
        Reason why it was kept without a request, or difference from a look in a step; "" for
        others.
    """

    module: str
    step: int
    facts: Mapping[str, TensorFacts]
    _arrays: Mapping[str, str] = field(repr=False)
    _blobs: Callable[[], Blobs] = field(repr=False, compare=False)
    why: str = ""

    @property
    def data(self) -> xr.Dataset:
        """A variable for each tensor, its facts as attributes; dims are each tensor's own.

        Raises
        ------
        KeyError
            The tensors have not been written; ``run.flush()`` says why.
        """
        return xr.Dataset(
            {tensor: self.tensor(tensor) for tensor in self.facts},
            attrs={"module": self.module, "step": self.step},
        )

    def tensor(self, name: str) -> xr.DataArray:
        """Return the stored part of one tensor."""
        found = self._blobs()[self._arrays[name]][self.module].sel(step=self.step)
        values = np.asarray(found.values)
        dims = [f"{name}_dim_{place}" for place in range(values.ndim)]
        facts = self.facts[name].plain()
        # Attributes of netCDF cannot be None.
        attrs = {key: value for key, value in facts.items() if value is not None}
        return xr.DataArray(values, dims=dims, name=name, attrs=attrs)

    @property
    def is_batch(self) -> bool:
        """True for the inputs of the model alone, kept at an alert or a breakpoint."""
        return bool(self.why) and "output" not in self.facts

    @property
    def nbytes(self) -> int:
        """Bytes of the stored tensors in memory."""
        return sum(4 * math.prod(_kept_shape(array)) for array in self._arrays.values())

    def __repr__(self) -> str:
        why = f", {self.why}" if self.why else ""
        return f"<look at {', '.join(self.facts)} of {self.module!r} at step {self.step}{why}>"


def looks_of(events: Iterable[Event], blobs: Callable[[], Blobs]) -> list[Look]:
    """Return the stored looks by step; malformed ones are left out."""
    return every_look_of(without_gone(events), blobs)


def every_look_of(events: Iterable[Event], blobs: Callable[[], Blobs]) -> list[Look]:
    """Return all looks ever recorded, by step."""
    found = (_look(event, blobs) for event in events if event.kind == LOOK)
    return sorted((one for one in found if one is not None), key=lambda one: one.step)


def without_gone(events: Iterable[Event]) -> list[Event]:
    """Return the events, without looks that were dropped to make room, in their order.

    A training that goes back may look at the same module at the same step again: the last look
    counts.
    """
    kept: list[Event] = []
    places: dict[tuple[str, int], int] = {}
    gone: set[int] = set()
    for event in events:
        if event.kind == LOOK and (module := _module_of(event)) is not None:
            places[module, event.step] = len(kept)
        elif event.kind == GONE:
            gone.add(places.pop(_gone_of(event), -1))
        kept.append(event)
    return [event for place, event in enumerate(kept) if place not in gone]


def gone_detail(module: str, step: int) -> str:
    """Return the detail of the event that drops the look at ``module`` of ``step``."""
    return json.dumps({"module": module, "step": step})


def _module_of(event: Event) -> str | None:
    try:
        return str(json.loads(event.detail)["module"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


def _gone_of(event: Event) -> tuple[str, int]:
    try:
        detail = json.loads(event.detail)
        return str(detail["module"]), int(detail["step"])
    except (ValueError, LookupError, TypeError, RecursionError, OverflowError):
        return "", -1


def detail_of(
    module: str, facts: Mapping[str, TensorFacts], arrays: Mapping[str, str], why: str = ""
) -> str:
    """Return the detail of its event."""
    tensors = {name: {"array": arrays[name], **one.plain()} for name, one in facts.items()}
    return json.dumps({"module": module, "tensors": tensors} | ({"why": why} if why else {}))


def _look(event: Event, blobs: Callable[[], Blobs]) -> Look | None:
    try:
        detail = json.loads(event.detail)
        tensors = detail["tensors"]
        facts = {str(name): TensorFacts.of(one) for name, one in tensors.items()}
        arrays = {str(name): str(one["array"]) for name, one in tensors.items()}
        module, why = str(detail["module"]), str(detail.get("why", ""))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return Look(module, event.step, MappingProxyType(facts), MappingProxyType(arrays), blobs, why)


def _kept_shape(array: str) -> list[int]:
    """Return the shape at the end of an array's name."""
    return [int(size) for size in array.rpartition("_")[2].split("x")]
