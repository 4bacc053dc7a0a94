"""The data of a training as a tree, from the loader down; nothing of the data is read."""

from __future__ import annotations

import json
from typing import Any

from torch.utils.data import DataLoader, IterableDataset

from notebook_probe.lineage.dataset_graph import DataPart, DatasetGraph
from notebook_probe.summary.dataset_graph.kinds import kind_of
from notebook_probe.summary.dataset_graph.members import members
from notebook_probe.summary.dataset_graph.parts import MOST_OF_ONE, is_part, parts_in
from notebook_probe.summary.dataset_graph.settings import class_name, setting, shortened

__all__ = ["describe"]

MOST_PARTS = 200
"""Maximum parts of a graph."""
DEEPEST = 12
MOST_CHARACTERS = 60_000
"""Maximum characters of all settings, as JSON; an event holds 100 000."""

FIRST = "dataset"
"""A sampler refers to it, too, and has no further information then."""


def describe(loader: object) -> DatasetGraph:
    """Describe the input pipeline: loader, sampler, dataset and transforms, nested.

    No sample is read and no batch is drawn. Whatever the objects do when they are inspected, a
    graph is returned: large values are described, secrets hidden, cycles cut.

    Parameters
    ----------
    loader : object
        A DataLoader, a dataset, or whatever else is trained on.

    Examples
    --------
    >>> import torch
    >>> from torch.utils.data import DataLoader, Subset, TensorDataset
    >>> whole = TensorDataset(torch.ones(100, 2), torch.zeros(100))
    >>> graph = describe(DataLoader(Subset(whole, range(50)), batch_size=8, shuffle=True))
    >>> [(part.role, part.name, part.length) for part in graph][:3]
    [('', 'DataLoader', 7), ('dataset', 'Subset', 50), ('dataset', 'TensorDataset', 100)]
    >>> graph.root.settings["batch_size"], graph.root.settings["shuffle"]
    (8, True)
    """
    return DatasetGraph(_Walk().part("", kind_of("", loader) or "data", loader, 0))


class _Walk:
    """Walk through the attributes of objects, each object once."""

    def __init__(self) -> None:
        self._room = MOST_CHARACTERS
        self._met: dict[int, object] = {}  # kept, so that no other object gets its number

    def part(self, role: str, kind: str, value: object, depth: int) -> DataPart:
        # Noted before its members are read: a dataset may refer to itself.
        self._met[id(value)] = value
        settings: dict[str, Any] = {}
        parts: list[DataPart] = []
        n_left_out = 0
        for name, held in sorted(members(value), key=_rank):
            if not is_part(name, held):
                self._keep(settings, name, held)
            for inner_role, inner in parts_in(name, held):
                # A loader and its sampler hold the same dataset; it is described once.
                if inner_role == name and self._is_told(name, inner):
                    continue
                if len(parts) == MOST_OF_ONE or len(self._met) >= MOST_PARTS or depth == DEEPEST:
                    n_left_out += 1
                else:
                    parts.append(self._below(inner_role, name, inner, depth + 1))
        return DataPart(
            role=role,
            kind=kind,
            name=class_name(value),
            length=_length(value),
            settings=settings,
            parts=tuple(parts),
            n_left_out=n_left_out,
        )

    def _is_told(self, name: str, value: object) -> bool:
        """Return whether it was seen before, or is a transform that only wraps seen ones."""
        if id(value) in self._met:
            return True
        held = [one for role, inner in members(value) for _, one in parts_in(role, inner)]
        is_round = kind_of(name, value) == "transform" and bool(held)
        return is_round and all(id(one) in self._met for one in held)

    def _keep(self, settings: dict[str, Any], name: str, held: object) -> None:
        if held is None or len(settings) >= MOST_OF_ONE:
            return
        told = _setting_or_class(name, held)
        if told == "":
            return
        # Measured as JSON, as an event holds a limited text.
        size = len(json.dumps([name, told]))
        if size <= self._room:
            settings[shortened(name)] = told
            self._room -= size

    def _below(self, role: str, name: str, value: object, depth: int) -> DataPart:
        kind = kind_of(name, value)
        if kind is None:  # a function among transforms
            return DataPart(role, "function", str(_setting_or_class(name, value)))
        if id(value) in self._met:
            return DataPart(role, kind, class_name(value), None, {"again": True})
        return self.part(role, kind, value, depth)


def _rank(member: tuple[str, object]) -> int:
    return member[0] != FIRST


def _setting_or_class(name: str, held: object) -> Any:
    """Return a setting in words, or its class if its own code fails."""
    try:
        return setting(name, held)
    except Exception:  # code of the object's own
        return class_name(held)


def _length(value: Any) -> int | None:
    """Return the length; a loader of a stream is skipped, as it would warn the user."""
    try:
        if issubclass(type(value), DataLoader) and issubclass(type(value.dataset), IterableDataset):
            return None
        return len(value)
    except Exception:  # it has none, or code of the object's own
        return None
