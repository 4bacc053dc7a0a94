"""A preset: what is attached together, where and how often."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from notebook_probe.model.map import ModelMap
from notebook_probe.model.selectors import default_places
from notebook_probe.registry import Registry
from notebook_probe.run.attach import preset_card
from notebook_probe.schedules import ScheduleLike

__all__ = ["PlacesOf", "Preset", "PresetRow", "presets"]

PlacesOf: TypeAlias = Callable[[ModelMap], Sequence[str]]
"""Is given the map of the model, so that its paths are those of the record."""


@dataclass(frozen=True, slots=True)
class PresetRow:
    """Some quantities, at the places where they fit.

    Examples
    --------
    >>> def heads(model_map):
    ...     return [path for path, module in model_map.modules.items() if path.endswith("head")]
    >>> row = PresetRow(("effective_rank",), heads, "every(10)")
    """

    names: tuple[str, ...]
    places: PlacesOf = default_places
    """Every weighted or activation module, if nothing else is said."""
    schedule: ScheduleLike = "every(1)"


@dataclass(frozen=True)
class Preset:
    """What is attached together; its docstring says what it is for, what it holds and costs.

    Examples
    --------
    >>> row = PresetRow(("effective_rank",), schedule="every(10)")
    >>> ranks = Preset("ranks", "Ranks of the heads.", (row,))
    >>> run = watch(model, probes=["default", ranks])  # doctest: +SKIP
    """

    name: str
    about: str
    rows: tuple[PresetRow, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "__doc__", str(self))

    def __str__(self) -> str:
        return preset_card.text(self)

    def _repr_html_(self) -> str:
        return preset_card.html(self)


presets: Registry[Preset] = Registry("preset")
"""Every preset by name, as ``watch(probes="name")`` finds it."""
