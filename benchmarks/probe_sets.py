"""What is measured, every step: four sets of quantities, as `nbp.watch` takes them.

| set | values per step: MLP, ResNet-18, small GPT |                                               |
|-----|-------------------------------------------|-----------------------------------------------|
| P1  | 8, 82, 56                                 | norms of every weight and gradient            |
| P2  | 29, 259, 146                              | P1, and what enters and returns to every leaf |
| P3  | 541, 5507, 3730                           | P2, and 64-bin histograms of what P1 measures |
| P4  | 12, 63, 51                                | covariance spectra of what enters a matrix    |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from torch import nn

__all__ = ["SETS", "Probes", "places", "quantities_of"]

Probes: TypeAlias = Mapping[Callable[[str, nn.Module], bool], list[str]]
"""Which quantities at which modules."""


def weighted(path: str, module: nn.Module) -> bool:
    """Modules with a weight of their own."""
    return module._parameters.get("weight") is not None


def leaf(path: str, module: nn.Module) -> bool:
    """Modules without children; an Embedding's input is no floating point tensor."""
    return not module._modules and not isinstance(module, nn.Embedding)


def matrix(path: str, module: nn.Module) -> bool:
    """Modules that multiply their input by a matrix."""
    return isinstance(module, nn.Linear | nn.Conv2d)


NORMS = ["weight_norm", "grad_norm"]
FLOW = ["input_mean", "input_norm", "output_grad_norm"]
HISTOGRAMS = ["weight_histogram", "grad_histogram"]
SPECTRA = ["input_cov_max_eig", "input_cov_stable_rank", "input_cov_condition"]

SETS: dict[str, Probes] = {
    "P1": {weighted: NORMS},
    "P2": {weighted: NORMS, leaf: FLOW},
    "P3": {weighted: NORMS + HISTOGRAMS, leaf: FLOW},
    "P4": {matrix: SPECTRA},
}


def quantities_of(probes: Probes) -> set[str]:
    """Every quantity of a set."""
    return {name for names in probes.values() for name in names}


def places(model: nn.Module, probes: Probes, quantity: str) -> dict[str, nn.Module]:
    """The modules by path at which a set wants ``quantity``."""
    return {
        path: module
        for selects, names in probes.items()
        if quantity in names
        for path, module in model.named_modules()
        if selects(path, module)
    }
