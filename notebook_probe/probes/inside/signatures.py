"""Differences between the readings of a class's instances: those that read alike share a graph."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from torch import nn
from torch._dynamo.eval_frame import OptimizedModule

__all__ = ["crowded_kinds", "has_region_of"]


def crowded_kinds(texts: Mapping[str, object], model: nn.Module, most: int) -> frozenset[type]:
    """Return the classes whose instances read in more than ``most`` different ways.

    Parameters
    ----------
    texts : mapping of str to object
        Readings at each place.
    model : nn.Module
    most : int

    Examples
    --------
    >>> model = nn.ModuleList(nn.ModuleList([nn.Linear(2, 2)]) for _ in range(3))
    >>> found = crowded_kinds({"0.0": "norm", "1.0": "mean", "2.0": "std"}, model, most=2)
    >>> sorted(kind.__name__ for kind in found)
    ['Linear', 'ModuleList']
    """
    if len(texts) <= most:
        return frozenset()
    read: dict[str, list[tuple[str, object]]] = {}
    for place in sorted(texts):
        for path in _around(place):
            read.setdefault(path, []).append((place[len(path) :], texts[place]))
    ways: dict[type, set[tuple[tuple[str, object], ...]]] = {}
    for path, one in read.items():
        module = _find(model, path)
        if module is not None:
            ways.setdefault(type(module), set()).add(tuple(one))
    return frozenset(kind for kind, different in ways.items() if len(different) > most)


def has_region_of(kinds: Iterable[type], model: nn.Module) -> bool:
    """Return whether a part of one of some classes is compiled separately."""
    searched = frozenset(kinds)
    if not searched:
        return False
    for module in model.modules():
        if type(module) in searched and module._compiled_call_impl is not None:
            return True
        if isinstance(module, OptimizedModule) and type(module._orig_mod) in searched:
            return True
    return False


def _around(place: str) -> Iterable[str]:
    """Yield a place and those that contain it, without the model itself."""
    while place:
        yield place
        place = place.rpartition(".")[0]


def _find(model: nn.Module, path: str) -> nn.Module | None:
    found: nn.Module | None = model
    for name in path.split("."):
        if isinstance(found, OptimizedModule):
            found = found._orig_mod
        found = found._modules.get(name) if found is not None else None
    return found
