"""The table of a model's modules: paths, classes, parameter counts, parents."""

from __future__ import annotations

from typing import Literal, TypeAlias, get_args

from notebook_probe.model.map import ModelMap
from notebook_probe.model.parameter_slots import distinct, n_elements, own_slots
from notebook_probe.record.format.source import ROOT, ModuleRow

__all__ = ["OnCompiled", "check_on_compiled", "module_table"]

OnCompiled: TypeAlias = Literal["inside", "skip", "eager"]
"""Handling of probes that need the calls of a compiled model."""


def check_on_compiled(given: str) -> None:
    """Raise ValueError unless it is one of the ways."""
    if given not in get_args(OnCompiled):
        raise ValueError(f"on_compiled={given!r}; allowed: 'inside', 'skip', 'eager'")


def module_table(model_map: ModelMap) -> tuple[ModuleRow, ...]:
    """Return one row per module in definition order; a shared module has one row."""
    rows: list[ModuleRow] = []
    places: dict[str, int] = {}
    for path, module in model_map.modules.items():
        places[path] = len(rows)
        rows.append(
            ModuleRow(
                name=path or ROOT,
                class_name=type(module).__name__,
                n_params=n_elements(model_map.slots(path, below=True)),
                n_own_params=n_elements(distinct(own_slots(module))),
                parent=places.get(path.rpartition(".")[0], 0) if path else -1,
            )
        )
    return tuple(rows)
