"""Readable contents of one commit of a record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from notebook_probe.errors import RecordFormatError
from notebook_probe.record.format.schema import BLOBS, NAMES, SCALARS, VECTORS
from notebook_probe.record.format.source import Event, ModuleRow
from notebook_probe.record.read.manifest import Manifest
from notebook_probe.record.read.stored import StoredStream, StoredVectors
from notebook_probe.record.read.stored_shapes import StoredBlob, StoredNames, StoredRagged
from notebook_probe.record.read.stored_tables import read_events, read_modules

__all__ = ["Contents", "read_contents"]

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class Contents:
    """A record as of one commit."""

    attrs: Mapping[str, Any]
    modules: tuple[ModuleRow, ...]
    events: tuple[Event, ...]
    paths: Mapping[str, StoredStream]
    """Streams of all kinds and of every branch, by their place in the record."""
    problems: tuple[RecordFormatError, ...]
    """Errors of the parts that were left out."""


def read_contents(manifest: Manifest) -> Contents:
    """Read every part of a record that can be read, and note what is wrong with the others.

    Raises
    ------
    RecordFormatError
        No stream can be read.
    """
    problems: list[RecordFormatError] = []

    def take(read: Callable[..., Part], *arguments: object) -> list[Part]:
        try:
            return [read(manifest, *arguments)]
        except RecordFormatError as problem:
            problems.append(problem)
            return []

    scalars = [f"{SCALARS}/{name}" for name in manifest.groups(SCALARS)]
    vectors = [
        f"{group}/{name}"
        for group in manifest.groups()
        if "axis" in manifest.group_attrs(group)
        for name in manifest.groups(group)
    ]
    named = [f"{NAMES}/{name}" for name in manifest.groups(NAMES)]
    ragged = [f"{VECTORS}/{name}" for name in manifest.groups(VECTORS)]
    blobs = [
        f"{BLOBS}/{quantity}/{module}"
        for quantity in manifest.groups(BLOBS)
        for module in manifest.groups(f"{BLOBS}/{quantity}")
    ]
    kinds = (
        (StoredStream, scalars),
        (StoredVectors, vectors),
        (StoredNames, [path for path in named if path not in vectors]),
        (StoredRagged, ragged),
        (StoredBlob, blobs),
    )
    paths: dict[str, StoredStream] = {
        path: stream for kind, places in kinds for path in places for stream in take(kind, path)
    }
    modules = take(read_modules)
    events = take(read_events)
    for stream in paths.values():
        problems.extend(stream.problems)
    problems.extend(_unsafe(manifest))
    if problems and not paths:
        raise problems[0]
    return Contents(
        manifest.attrs,
        modules[0] if modules else (),
        events[0] if events else (),
        MappingProxyType(paths),
        tuple(problems),
    )


def _unsafe(manifest: Manifest) -> Iterable[RecordFormatError]:
    for path in manifest.unsafe:
        yield RecordFormatError(
            f"{manifest.location} names a part {path[:80]!r}; letters, digits and _.%~- only"
        )
