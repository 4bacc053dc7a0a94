"""Small networks drawn at random, with what their graphs must be, worked out beside them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from torch import Tensor, nn

__all__ = ["Drawn", "drawn_nets"]

WIDTH = 3


@dataclass(frozen=True)
class Step:
    """One operator: what it is, and which earlier values it takes; value 0 is the input."""

    kind: str
    takes: tuple[int, ...]
    layer: int = 0


class Drawn(nn.Module):
    """Runs its steps one after the other, and gives the values at the end that nobody takes.

    Parameters
    ----------
    n_layers : int
    steps : sequence of Step
    """

    def __init__(self, n_layers: int, steps: tuple[Step, ...]) -> None:
        super().__init__()
        self.steps = steps
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(n_layers))
        self.tanh = nn.Tanh()

    def forward(self, x: Tensor) -> list[Tensor]:
        values = [x]
        for step in self.steps:
            taken = [values[place] for place in step.takes]
            if step.kind == "linear":
                values.append(self.layers[step.layer](taken[0]))
            elif step.kind == "tanh":
                values.append(self.tanh(taken[0]))
            else:
                values.append(getattr(torch, step.kind)(*taken))
        return [values[place] for place in self.ends]

    @property
    def ends(self) -> list[int]:
        """Values that nobody takes."""
        taken = {place for step in self.steps for place in step.takes}
        return [place for place in range(len(self.steps) + 1) if place not in taken]

    @property
    def operators(self) -> list[tuple[str, str]]:
        """What each step does, and at which path."""
        paths = {"linear": "layers.{}", "tanh": "tanh"}
        return [(one.kind, paths.get(one.kind, "").format(one.layer)) for one in self.steps]

    @property
    def links(self) -> set[tuple[int, int]]:
        """Which step takes what which other gives, by their numbers from 1; 0 is the input."""
        return {(place, at) for at, one in enumerate(self.steps, 1) for place in one.takes}


@st.composite
def drawn_nets(draw: st.DrawFn) -> Drawn:
    n_layers = draw(st.integers(1, 3))
    steps = []
    for at in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from(["linear", "tanh", "relu", "add", "mul"]))
        places = st.integers(0, at)
        takes = (draw(places), draw(places)) if kind in ("add", "mul") else (draw(places),)
        steps.append(Step(kind, takes, draw(st.integers(0, n_layers - 1))))
    return Drawn(n_layers, tuple(steps))
