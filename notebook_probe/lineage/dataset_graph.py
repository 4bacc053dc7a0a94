"""The data of a training as a tree: loader, sampler, dataset, transforms, and their settings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any, Self

from notebook_probe.record.format.source import Event
from notebook_probe.tabular import html_table

__all__ = ["DATASET_GRAPH", "DataPart", "DatasetGraph", "read_dataset_graph"]

DATASET_GRAPH = "dataset_graph"
"""The kind of its event, whose detail is ``{"graph": {...}}``."""

VERSION = 1
DEEPEST = 64
"""Maximum depth of a graph that is read; deeper ones are invalid."""


@dataclass(frozen=True, slots=True)
class DataPart:
    """One object that takes part in making batches.

    Attributes
    ----------
    role : str
        Role in the part above: the attribute's name, ``"dataset"``, or its place among several,
        ``"transforms[0]"``; empty for the topmost.
    kind : str
        ``"loader"``, ``"sampler"``, ``"dataset"``, ``"transform"`` or ``"data"``.
    name : str
        Name of its class, or of a function.
    length : int, optional
        Length of the node: batches of a loader, samples of a dataset.
    settings : mapping of str to plain JSON values
        Large ones are described, not kept.
    parts : tuple of DataPart
        Parts that it consists of.
    n_left_out : int
        Parts that there was no room for.
    """

    role: str
    kind: str
    name: str
    length: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[DataPart, ...] = ()
    n_left_out: int = 0

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "role": self.role,
            "kind": self.kind,
            "name": self.name,
            "length": self.length,
            "settings": dict(self.settings),
            "parts": [part.plain() for part in self.parts],
            "n_left_out": self.n_left_out,
        }

    @classmethod
    def of(cls, found: Mapping[str, Any], depth: int = 0) -> Self:
        """Parse the result of `plain`.

        Raises
        ------
        ValueError, LookupError, TypeError, AttributeError
            ``found`` is not a result of `plain`.
        """
        if depth > DEEPEST:
            raise ValueError(f"deeper than {DEEPEST}")
        length = found["length"]
        return cls(
            role=str(found["role"]),
            kind=str(found["kind"]),
            name=str(found["name"]),
            length=None if length is None else int(length),
            settings={str(key): value for key, value in found["settings"].items()},
            parts=tuple(cls.of(part, depth + 1) for part in found["parts"]),
            n_left_out=int(found["n_left_out"]),
        )

    @property
    def told(self) -> str:
        """Settings as one line.

        Examples
        --------
        >>> DataPart("", "loader", "DataLoader", 938, {"batch_size": 64, "shuffle": True}).told
        'batch_size=64, shuffle=True'
        """
        told = [f"{name}={_value(value)}" for name, value in self.settings.items()]
        more = [f"{self.n_left_out} more parts"] if self.n_left_out else []
        return ", ".join([*told, *more])

    def lines(self, depth: int = 0) -> Iterator[tuple[int, DataPart]]:
        """Yield the part and all parts below it, each with its depth."""
        yield depth, self
        for part in self.parts:
            yield from part.lines(depth + 1)


@dataclass(frozen=True, slots=True, repr=False)
class DatasetGraph:
    """The data of a training, from the loader down to the datasets.

    Prints as a tree; in a notebook it is a table.

    Examples
    --------
    >>> whole = DataPart("dataset", "dataset", "MNIST", 60000, {"train": True})
    >>> DatasetGraph(DataPart("", "loader", "DataLoader", 938, {"batch_size": 64}, (whole,)))
    DataLoader (938): batch_size=64
      dataset: MNIST (60\u2009000): train=True
    """

    root: DataPart

    def __iter__(self) -> Iterator[DataPart]:
        return (part for _, part in self.root.lines())

    def plain(self) -> dict[str, Any]:
        """Return plain values for JSON, with the version of this format."""
        return {"version": VERSION, "root": self.root.plain()}

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> Self:
        """Parse the result of `plain`.

        Raises
        ------
        ValueError, LookupError, TypeError, AttributeError
            ``found`` is not a result of `plain`, or has a newer version.
        """
        if found["version"] > VERSION:
            raise ValueError(f"version {found['version']} of a dataset graph; up to {VERSION}")
        return cls(DataPart.of(found["root"]))

    def __repr__(self) -> str:
        return "\n".join(f"{'  ' * depth}{_line(part)}" for depth, part in self.root.lines())

    def _repr_html_(self) -> str:
        head = {"part": "", "is": "", "length": "", "settings": "24em"}
        return html_table(head, (_cells(depth, part) for depth, part in self.root.lines()))


def read_dataset_graph(events: Iterable[Event]) -> DatasetGraph | None:
    """Return the last recorded graph; None if none can be read."""
    for event in reversed([one for one in events if one.kind == DATASET_GRAPH]):
        try:
            return DatasetGraph.of(json.loads(event.detail)["graph"])
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            continue
    return None


def _line(part: DataPart) -> str:
    role = f"{part.role}: " if part.role else ""
    length = "" if part.length is None else f" ({_number(part.length)})"
    settings = f": {part.told}" if part.told else ""
    return f"{role}{part.name}{length}{settings}"


def _value(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def _number(value: int) -> str:
    return f"{value:,}".replace(",", "\u2009")


def _cells(depth: int, part: DataPart) -> list[str]:
    role = f'<span style="opacity: 0.65">{escape(part.role)}</span> ' if part.role else ""
    length = "" if part.length is None else _number(part.length)
    return [
        "&emsp;" * depth + role + f"<b>{escape(part.name)}</b>",
        escape(part.kind),
        length,
        escape(part.told),
    ]
