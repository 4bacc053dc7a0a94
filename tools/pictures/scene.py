"""A scene: a short training in which something happens, and the quantities that show it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from torch import nn
from torch.optim import Optimizer

import notebook_probe as nbp
from notebook_probe.quantities import Quantity

__all__ = ["Scene", "Shown", "Train", "Watch", "play"]

Watch: TypeAlias = Callable[[nn.Module, Optimizer], nbp.Run]
Train: TypeAlias = Callable[[Watch], nbp.Run]


@dataclass(frozen=True)
class Shown:
    """How one quantity is shown."""

    modules: tuple[str, ...] = ()
    """Those shown; without, three whose series change."""
    log: bool | None = None
    marks: Mapping[str, float] = field(default_factory=dict)
    """Levels to compare with."""
    told: str = ""
    """What the picture shows of the scene, below it."""


@dataclass(frozen=True)
class Scene:
    """A training, and what its pictures have in common."""

    about: str
    """What is trained, and what happens to it."""
    train: Train
    shown: Mapping[str, Shown] = field(default_factory=dict)
    modules: tuple[str, ...] = ()
    every: Mapping[str, int] = field(default_factory=dict)
    """Steps between two values, by cost class; 1 if not there."""
    events: Mapping[str, int] = field(default_factory=dict)
    """What happens at which step."""


def play(scene: Scene, quantities: Iterable[Quantity], store: Path) -> nbp.OpenedRun:
    """Train, with the quantities attached wherever they fit."""
    models = []  # a run ends with its model

    def watch(model: nn.Module, optimizer: Optimizer) -> nbp.Run:
        models.append(model)
        run = nbp.watch(model, optimizer, store=store, probes=None)
        for quantity in quantities:
            for place in ("*", ""):
                with suppress(nbp.NotApplicableError):
                    run.attach(place, quantity, f"every({scene.every.get(quantity.cost, 1)})")
        return run

    scene.train(watch).close()
    return nbp.open_run(store)
