"""Change a record as somebody would who knows the format: its root, its arrays, its chunks."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from notebook_probe.record.format.codec import encode, encode_text

__all__ = ["Node", "Spoil", "edit", "events", "node", "numbers", "root_attrs", "text"]

Node: TypeAlias = dict[str, Any]
Spoil: TypeAlias = Callable[[Path], None]


def edit(folder: Path, change: Callable[[Node], object]) -> None:
    """Change the commit record."""
    file = folder / "zarr.json"
    root = json.loads(file.read_text())
    change(root)
    file.write_text(json.dumps(root))


def root_attrs(**changed: Any) -> Spoil:
    """Set attributes of the root."""
    return lambda folder: edit(folder, lambda root: root["attributes"].update(changed))


def node(path: str, **changed: Any) -> Spoil:
    """Set what the commit record says of one array."""
    return lambda folder: edit(
        folder, lambda root: root["consolidated_metadata"]["metadata"][path].update(changed)
    )


def numbers(path: str, values: Sequence[float]) -> Spoil:
    """Write other numbers into the first chunk of an array of one axis, with a right checksum."""

    def spoil(folder: Path) -> None:
        found = _node(folder, path)
        chunk = np.full(found["chunk_grid"]["configuration"]["chunk_shape"], -1, "int64")
        chunk[: len(values)] = values
        (folder / path / "c/0").write_bytes(encode(chunk))
        node(path, shape=[len(values)])(folder)

    return spoil


def text(path: str, texts: Sequence[str]) -> Spoil:
    """Write other texts into an array, as many as it had or more."""

    def spoil(folder: Path) -> None:
        length = _node(folder, path)["chunk_grid"]["configuration"]["chunk_shape"][0]
        (folder / path / "c/0").write_bytes(encode_text(texts, length))
        node(path, shape=[len(texts)])(folder)

    return spoil


def events(kind: str, detail: str, words: str = "text") -> Spoil:
    """Replace the events by one of a kind."""

    def spoil(folder: Path) -> None:
        text("events/kind", [kind])(folder)
        text("events/detail", [detail])(folder)
        text("events/text", [words])(folder)
        for name in ("step", "time"):
            numbers(f"events/{name}", [1])(folder)

    return spoil


def _node(folder: Path, path: str) -> Node:
    root = json.loads((folder / "zarr.json").read_text())
    found: Node = root["consolidated_metadata"]["metadata"][path]
    return found
