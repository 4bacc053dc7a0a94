"""The table of a model's modules: paths, classes, parameter counts, parents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias, get_args

import torch
from torch import nn
from torch.nn.parameter import UninitializedParameter

from notebook_probe.model.map import ModelMap
from notebook_probe.model.parameter_slots import Slot, distinct, own_slots
from notebook_probe.record.format.source import ROOT, ModuleRow

__all__ = ["OnCompiled", "check_on_compiled", "module_table", "unwrap"]

OnCompiled: TypeAlias = Literal["skip", "eager"]
"""What becomes of probes of a compiled model's calls."""


def check_on_compiled(given: str) -> None:
    """Raise ValueError unless it is one of the ways."""
    if given not in get_args(OnCompiled):
        raise ValueError(f"on_compiled={given!r}; allowed: 'skip', 'eager'")


def unwrap(model: nn.Module) -> nn.Module:
    """The module a user means: the one inside a compiled, DDP or DataParallel wrapper."""
    wrappers = (nn.parallel.DistributedDataParallel, nn.DataParallel)
    while True:
        if isinstance(model, wrappers):
            model = model.module
        elif isinstance(model, torch._dynamo.OptimizedModule):
            model = model._orig_mod
        else:
            return model


def module_table(model_map: ModelMap) -> tuple[ModuleRow, ...]:
    """One row per module in definition order; a shared module once, under its first path."""
    rows: list[ModuleRow] = []
    places: dict[str, int] = {}
    for path, module in model_map.modules.items():
        places[path] = len(rows)
        rows.append(
            ModuleRow(
                name=path or ROOT,
                class_name=type(module).__name__,
                n_params=_elements(model_map.slots(path, below=True)),
                n_own_params=_elements(distinct(own_slots(module))),
                parent=places.get(path.rpartition(".")[0], 0) if path else -1,
            )
        )
    return tuple(rows)


def _elements(slots: Iterable[Slot]) -> int:
    """Elements, those of lazy parameters not counted: they have no shape yet."""
    values = (slot.get() for slot in slots)
    return sum(
        value.numel()
        for value in values
        if value is not None and not isinstance(value, UninitializedParameter)
    )
