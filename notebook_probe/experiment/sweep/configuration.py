"""One configuration: plain nested dicts, and a stable name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from notebook_probe.json_numbers import json_value

__all__ = ["Configuration", "configured"]

# 48 bits: two of a thousand configurations share an id with a chance of about 2e-9.
ID_DIGITS = 12


@dataclass(frozen=True)
class Configuration(Mapping[str, Any]):
    """The dicts of one training, to be given on as ``function(**configuration)``.

    Attributes
    ----------
    params : dict
        Plain nested dicts; what the mapping is of.
    chosen : mapping of str to value
        Values that differ within a sweep, by names with dots.
    id : str
        Hash of its content, which does not depend on who makes it or when.
    folder : str
        Folder in which a training may write; the sweep finds records there. Empty before it runs.

    Examples
    --------
    >>> one = configured({"model": {"depth": 2}}, {"model.depth": 3, "train.lr": 0.1})
    >>> dict(one), one.name
    ({'model': {'depth': 3}, 'train': {'lr': 0.1}}, 'depth 3, lr 0.1')
    """

    params: dict[str, Any]
    chosen: Mapping[str, Any]
    id: str
    # A configuration is the same wherever it is stored.
    folder: str = field(default="", compare=False)

    def __getitem__(self, key: str) -> Any:
        return self.params[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.params)

    def __len__(self) -> int:
        return len(self.params)

    # The generated hash would fail at the dicts.
    def __hash__(self) -> int:
        return hash(self.id)

    @property
    def name(self) -> str:
        """Differences from the base, in few words."""
        ends = [path.rpartition(".")[2] for path in self.chosen]
        # The last parts of the paths are enough for a name, unless two of them are equal.
        paths = self.chosen if len({*ends}) < len(ends) else ends
        pairs = zip(paths, self.chosen.values(), strict=True)
        return ", ".join(f"{path} {_short(value)}" for path, value in pairs) or "unchanged"


def configured(base: Mapping[str, Any], chosen: Mapping[str, Any]) -> Configuration:
    """Return a copy of the base with these values; neither is changed.

    Raises
    ------
    ValueError
        A part of a name is not a dict.
    TypeError
        A chosen value has no text that would be the same tomorrow.
    """
    params = deepcopy(dict(base))
    for path, value in chosen.items():
        _put(params, path, deepcopy(value))
    # Objects in the base are the same for all configurations; chosen ones must have a stable text.
    told = {"base": _as_json(base, strict=False), "chosen": _as_json(chosen, strict=True)}
    # Sorted, so that the id does not depend on the order in which a space was written.
    digest = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
    return Configuration(params, dict(chosen), digest[:ID_DIGITS])


def _put(params: dict[str, Any], path: str, value: Any) -> None:
    *parents, last = path.split(".")
    inside = params
    for at, key in enumerate(parents):
        inside = inside.setdefault(key, {})
        if not isinstance(inside, dict):
            through = ".".join(parents[: at + 1])
            raise ValueError(f"{path}: {through} is {inside!r}, not a dict to put {last!r} in")
    inside[last] = value


def _as_json(value: Any, *, strict: bool) -> Any:
    """Return a value as JSON; functions and classes by location, other objects by class."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return json_value(value)
    if isinstance(value, Mapping):
        return {str(key): _as_json(one, strict=strict) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_as_json(one, strict=strict) for one in value]
    if hasattr(value, "item") and getattr(value, "ndim", None) == 0:  # a number of numpy
        return _as_json(value.item(), strict=strict)
    if callable(value) and hasattr(value, "__qualname__"):
        return f"{value.__module__}.{value.__qualname__}"
    if strict:
        raise TypeError(
            f"{value!r} cannot be recognized in a later process: choose among numbers, text, "
            f"lists, dicts, functions and classes"
        )
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    text = getattr(value, "__name__", None) or str(value)
    return text if len(text) <= 24 else f"{text[:23]}…"
