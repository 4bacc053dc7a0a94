"""All that one preset says of itself: what it is for, what it measures where and when, its cost."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from notebook_probe.quantities.define.costs import measured_costs
from notebook_probe.schedules import schedule
from notebook_probe.tabular import as_html, html_card, text_card

if TYPE_CHECKING:
    from notebook_probe.run.attach.preset import Preset, PresetRow

__all__ = ["html", "measures", "text"]

FEW = 20
"""More quantities are not written out."""


def text(preset: Preset) -> str:
    """For a terminal, and as its docstring."""
    return text_card(f"{preset.name}: {preset.about}", _facts(preset))


def html(preset: Preset) -> str:
    """For a notebook."""
    title = f"<b>{escape(preset.name)}</b>: {as_html(preset.about)}"
    return html_card(title, _facts(preset))


def measures(preset: Preset) -> str:
    """What is measured when and where, a paragraph for each."""
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
    """The places as the first words of their function's docstring name them."""
    named = str(getattr(row.places, "__name__", "where its function says"))
    where = re.split(r"[,;.\n]", inspect.getdoc(row.places) or named)[0]
    return f"{schedule(row.schedule)}, {where[:1].lower()}{where[1:]}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return ", ".join(f"`{name}`" for name in names[:FEW]) + more
