"""Loss landscape settings: when parameters are stored, and what is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Literal, TypeAlias, get_args

from notebook_probe.checks import is_whole
from notebook_probe.errors import near

__all__ = ["LandscapeSettings", "Method", "Normalise", "Unit"]

Unit: TypeAlias = Literal["step", "epoch"]
Method: TypeAlias = Literal["svd", "mindspore"]
Normalise: TypeAlias = Literal["filter", "tensor"]

SMALLEST, LARGEST = 3, 256
FEWEST = 3
"""Minimum number of snapshots of an interval: two are on a line, and define no plane."""
KINDS = ("train", "result")


@dataclass(frozen=True, slots=True)
class LandscapeSettings:
    """Loss landscape settings: which parameters are stored in training, and how to draw them.

    Parameters
    ----------
    landscape_size : int
        Points along each axis, 3 to 256.
    unit : "step" or "epoch"
        Unit of `intervals`: completed updates or epochs, from 1.
    num_samples : int
        Samples of a loss: ``max(1, num_samples // batch size)`` batches.
    create_train, create_result : bool
        Draw the plane of the path of each interval; a random one around its end.
    intervals : tuple of tuple of int
        Units after which the parameters are stored; each interval has a separate path.
    method : "svd" or "mindspore"
        Method that finds the plane of a path.
    normalise : "filter" or "tensor"
        Part of the parameters whose norm a random direction gets.

    Examples
    --------
    >>> LandscapeSettings.of({"unit": "epoch", "intervals": [[1, 2, 3]]}).units
    (1, 2, 3)
    >>> LandscapeSettings.of({"metod": "svd"})
    Traceback (most recent call last):
    ...
    ValueError: collect_landscape has no 'metod'; close: 'method'
    """

    landscape_size: int = 40
    unit: Unit = "step"
    num_samples: int = 128
    create_train: bool = True
    create_result: bool = True
    intervals: tuple[tuple[int, ...], ...] = (tuple(range(1, 10)), tuple(range(10, 20)))
    method: Method = "svd"
    normalise: Normalise = "filter"

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> LandscapeSettings:
        """Parse a user's settings; missing keys get their defaults, also in nested dicts.

        Raises
        ------
        TypeError
            For a value of another type.
        ValueError
            An unknown key, or a value that is not allowed.
        """
        if not isinstance(given, Mapping):
            raise TypeError(f"collect_landscape={given!r}: a dict or None is expected")
        _known("collect_landscape", given, READ)
        read = {name: READ[name](name, value) for name, value in given.items()}
        return cls(**read.pop("create_landscape", {}), **read)

    def as_dict(self) -> dict[str, Any]:
        """Return the settings in the form that users give."""
        given = asdict(self)
        create = {kind: given.pop(f"create_{kind}") for kind in KINDS}
        return {**given, "create_landscape": create, "intervals": [*map(list, self.intervals)]}

    @property
    def units(self) -> tuple[int, ...]:
        """Units after which the parameters are stored, in order."""
        return tuple(sorted({unit for interval in self.intervals for unit in interval}))


def _known(where: str, given: Mapping[str, Any], known: Any) -> None:
    for name in given:
        if not isinstance(name, str):
            raise TypeError(f"{where}: {name!r} is no name; {near('', known)}")
        if name not in known:
            raise ValueError(f"{where} has no {name!r}; {near(name, known)}")


def _whole(name: str, value: Any) -> int:
    if not is_whole(value):
        raise TypeError(f"{name}={value!r}: a whole number is expected")
    return value


def _size(name: str, value: Any) -> int:
    if not SMALLEST <= _whole(name, value) <= LARGEST:
        raise ValueError(f"{name}={value}; allowed: {SMALLEST} to {LARGEST}")
    return value


def _positive(name: str, value: Any) -> int:
    if _whole(name, value) < 1:
        raise ValueError(f"{name}={value}; allowed: from 1")
    return value


def _one_of(*allowed: str) -> Any:
    def read(name: str, value: Any) -> str:
        if not isinstance(value, str):
            raise TypeError(f"{name}={value!r}: a text is expected, {_or(allowed)}")
        if value not in allowed:
            raise ValueError(f"{name}={value!r}; allowed: {_or(allowed)}")
        return value

    return read


def _or(allowed: tuple[str, ...]) -> str:
    return " or ".join(map(repr, allowed))


def _create(name: str, value: Any) -> dict[str, bool]:
    if not isinstance(value, Mapping):
        raise TypeError(f"{name}={value!r}: a dict of 'train' and 'result' is expected")
    _known(name, value, KINDS)
    for kind, is_wanted in value.items():
        if not isinstance(is_wanted, bool):
            raise TypeError(f"{name}[{kind!r}]={is_wanted!r}: True or False is expected")
    return {f"create_{kind}": is_wanted for kind, is_wanted in value.items()}


def _intervals(name: str, value: Any) -> tuple[tuple[int, ...], ...]:
    if not isinstance(value, list | tuple):
        raise TypeError(f"{name}={value!r}: a list of lists is expected, such as [[1, 2, 3]]")
    if not value:
        raise ValueError(f"{name}=[]; allowed: one interval or more, such as [[1, 2, 3]]")
    return tuple(_interval(f"{name}[{place}]", one) for place, one in enumerate(value))


def _interval(name: str, value: Any) -> tuple[int, ...]:
    if not isinstance(value, list | tuple | range):
        raise TypeError(f"{name}={value!r}: a list of whole numbers is expected")
    units = tuple(_positive(f"{name}[{place}]", unit) for place, unit in enumerate(value))
    if len(units) < FEWEST or any(one >= other for one, other in pairwise(units)):
        raise ValueError(
            f"{name}={value!r}; allowed: {FEWEST} numbers or more, each above the one before"
        )
    return units


READ: dict[str, Any] = {
    "landscape_size": _size,
    "unit": _one_of(*get_args(Unit)),
    "num_samples": _positive,
    "create_landscape": _create,
    "intervals": _intervals,
    "method": _one_of(*get_args(Method)),
    "normalise": _one_of(*get_args(Normalise)),
}
