"""The table of presets: what can be attached under one name, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from statistics import median

from notebook_probe.errors import UnknownNameError, near
from notebook_probe.quantities.define.costs import MeasuredCost, measured_costs
from notebook_probe.run.attach.preset import Preset, measures
from notebook_probe.run.attach.presets import presets
from notebook_probe.tabular import as_html, html_table, text_table

__all__ = ["PresetTable", "list_presets", "typical_percent"]

NOTHING = "nothing"
"""Text for a model without anything that a preset measures."""


@dataclass(frozen=True, repr=False)
class PresetTable:
    """The presets, shown as a table; a sequence, and by name a mapping."""

    rows: tuple[Preset, ...]

    def __iter__(self) -> Iterator[Preset]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> Preset:
        found = next((preset for preset in self.rows if preset.name == name), None)
        if found is None:
            raise UnknownNameError(f"no preset {name!r}; {near(name, self._names())}")
        return found

    def _names(self) -> list[str]:
        return [preset.name for preset in self.rows]

    # Jupyter completes `presets["..."]` from this method.
    _ipython_key_completions_ = _names

    def __repr__(self) -> str:
        head = ("name", *_workloads(), "what it is for")
        lines = [(preset.name, *_costs(preset), preset.about) for preset in self.rows]
        return f"{text_table([head, *lines])}\n{_legend()}"

    def _repr_html_(self) -> str:
        head = {"name": "", "what it is for": "14em", "measures": "24em"}
        cells = (
            [
                escape(preset.name),
                as_html(preset.about),
                as_html(measures(preset)),
                *map(escape, _costs(preset)),
            ]
            for preset in self.rows
        )
        table = html_table(head | dict.fromkeys(_workloads(), ""), cells)
        return f"{table}<p>{escape(_legend())}</p>"


def list_presets() -> PresetTable:
    """List the presets, including yours: for ``watch(model, probes="name")``.

    Returns
    -------
    PresetTable
        A table with the cost of each preset: per cent of a training step, measured on models of
        different size. Iterate over it, or take one by its name, which shows all that it measures.

    Examples
    --------
    >>> print(list_presets()["batchnorm"].about)
    What BatchNorm sees in training against what it uses in evaluation, every ten steps.
    >>> run = watch(model, probes=["default", "spectra"])  # doctest: +SKIP
    """
    return PresetTable(tuple(presets.values()))


def typical_percent(preset: Preset) -> float | None:
    """Return the per cent of a training step, the median of the models that it fits."""
    cells = measured_costs().presets.get(preset.name, {}).values()
    known = [cell.percent for cell in cells if isinstance(cell, MeasuredCost)]
    return median(known) if known else None


def _workloads() -> list[str]:
    """Return the workloads on which presets were measured."""
    return [*dict.fromkeys(name for row in measured_costs().presets.values() for name in row)]


def _costs(preset: Preset) -> list[str]:
    cells = measured_costs().presets.get(preset.name, {})
    known = (cells.get(workload) for workload in _workloads())
    return [
        str(cell) if isinstance(cell, MeasuredCost) else NOTHING if cell else "not measured"
        for cell in known
    ]


def _legend() -> str:
    return (
        f"per cent of a training step without it, on average over its schedules "
        f"({measured_costs().machine}), by SGD but of the GPT and where AdamW is named; "
        f"{NOTHING}: the model has nothing that it measures"
    )
