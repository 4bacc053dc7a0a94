"""A preset: what is attached together, where and how often."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TypeAlias

from notebook_probe.model.map import ModelMap
from notebook_probe.model.selectors import default_places
from notebook_probe.quantities.define.costs import measured_costs
from notebook_probe.registry import Registry
from notebook_probe.schedules import ScheduleLike, schedule
from notebook_probe.tabular import as_html, html_card, text_card

__all__ = ["PlacesOf", "Preset", "PresetRow", "measures", "presets"]

PlacesOf: TypeAlias = Callable[[ModelMap], Sequence[str]]
"""Function of the model map, so that paths are those of the record."""

FEW = 20
"""More quantities are not written out."""


@dataclass(frozen=True, slots=True)
class PresetRow:
    """Quantities of a preset, at the places where they fit.

    Examples
    --------
    >>> def heads(model_map):
    ...     return [path for path, module in model_map.modules.items() if path.endswith("head")]
    >>> row = PresetRow(("effective_rank",), heads, "every(10)")
    """

    names: tuple[str, ...]
    places: PlacesOf = default_places
    """Default: every weighted or activation module."""
    schedule: ScheduleLike = "every(1)"


@dataclass(frozen=True)
class Preset:
    """Named group of quantities; its docstring has its purpose, contents and cost.

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
        # The dataclass is frozen; `help(preset)` should list what it measures.
        object.__setattr__(self, "__doc__", str(self))

    def __str__(self) -> str:
        return text_card(f"{self.name}: {self.about}", _facts(self))

    def _repr_html_(self) -> str:
        title = f"<b>{escape(self.name)}</b>: {as_html(self.about)}"
        return html_card(title, _facts(self))


presets: Registry[Preset] = Registry("preset")
"""Every preset by name, as ``watch(probes="name")`` finds it."""


def measures(preset: Preset) -> str:
    """Describe what is measured when and where, a paragraph for each."""
    names: dict[str, dict[str, None]] = {}
    for row in preset.rows:
        names.setdefault(_when_and_where(row), {}).update(dict.fromkeys(row.names))
    return "\n\n".join(f"{head}: {_listed([*some])}" for head, some in names.items())


def _facts(preset: Preset) -> dict[str, str]:
    costs = measured_costs()
    cost = costs.of_preset(preset.name)
    facts = {"measures": measures(preset)}
    return facts | {"cost": f"{cost} ({costs.machine})"} if cost else facts


def _when_and_where(row: PresetRow) -> str:
    """Return the first words of the docstring of the function of places."""
    named = str(getattr(row.places, "__name__", "where its function says"))
    where = re.split(r"[,;.\n]", inspect.getdoc(row.places) or named)[0]
    return f"{schedule(row.schedule)}, {where[:1].lower()}{where[1:]}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return ", ".join(f"`{name}`" for name in names[:FEW]) + more
