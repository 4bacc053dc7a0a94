"""Hostile records: each a name and a change of a whole one."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numcodecs import Blosc

from tests.hostile.editing import Node, Spoil, edit, events, node, numbers, root_attrs, text

__all__ = ["CORPUS", "DOZEN"]

ARRAYS = (
    "scalars/every_1/step",
    "scalars/every_1/time",
    "scalars/every_1/module",
    "scalars/every_1/grad_norm",
    "linear_hist/every_4/step",
    "linear_hist/every_4/linear_bin",
    "linear_hist/every_4/weight_histogram",
    "names/logged/name",
    "names/logged/value",
    "blobs/image/%28root%29/image",
    "events/step",
    "events/kind",
    "events/detail",
    "modules/module",
    "modules/parent",
)
STEPS = (
    "scalars/every_1/step",
    "scalars/every_1.r2/step",
    "scalars/every_5/step",
    "linear_hist/every_4/step",
    "names/logged/step",
    "blobs/image/%28root%29/step",
)
UGLY = {
    "mathtext": r"$\frac{$",
    "ansi": "\x1b[31mred\x1b]0;title\x07",
    "right to left": "a\u202eb\u2066c",
    "null": "a\0b",
    "html": "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "lines": "a\n\r\tb" * 40,
    "long": "m" * 200_000,
    "empty": "",
    "parents": "../../etc/passwd",
    "dots": "." * 5_000,
    "unpaired": "\ud800",
    "combining": "e" + "\u0301" * 20_000,
}
DEEP = "[" * 900 + "]" * 900
DEEP_DICT = '{"a":' * 400 + "1" + "}" * 400
TEXTS = {
    "nothing": "",
    "no json": "{",
    "null": "null",
    "number": "3",
    "list": "[]",
    "empty dict": "{}",
    "deep list": DEEP,
    "deeper list": "[" * 100_000,
    "deep dict": DEEP_DICT,
    "giant number": "1" * 4_000,
    "infinite": '{"a": 1e999, "b": NaN}',
    "many": json.dumps({f"n{i}": i for i in range(100_000)}),
    "long value": json.dumps({"a": "x" * 2_000_000}),
    "ugly": json.dumps({one: one for one in UGLY.values()}),
}
VALUES: dict[str, Any] = {
    "null": None,
    "number": 3,
    "giant": 10**400,
    "text": "text",
    "list of kinds": [[], {}, None, 1.5, "a"],
    "dict": {"a": {"b": []}},
    "true": True,
    "negative": -5,
}
OWN_TEXT = ("config", "annotations", "lineage", "summary", "git", "packages", "chunks")
OWN_VALUES = (
    "title", "run_id", "created", "state", "branches", "changed_modules", "dropped_rows",
    "summary", "config", "chunks", "unwritten_of", "stopped", "lineage", "format_version",
)  # fmt: skip
KINDS = (
    "checkpoint", "alert", "model_graph", "dataset_graph", "breakpoint", "attach", "set",
    "epoch", "samples", "look", "flight", "unit", "code", "branch",
)  # fmt: skip
DETAILS = {
    **{name: TEXTS[name] for name in ("nothing", "no json", "null", "list", "empty dict")},
    **{name: TEXTS[name] for name in ("deep list", "deep dict", "infinite", "ugly")},
    "kinds": json.dumps(
        {name: [] for name in ("step", "bytes", "path", "loss", "rule", "module", "nodes")}
    ),
    "giants": json.dumps({"step": 10**30, "bytes": -(10**30), "path": "a" * 10**6, "loss": "x"}),
    "unc path": json.dumps({"step": 1, "bytes": 1, "path": r"\\evil\share\x", "loss": 0.5}),
    "null path": json.dumps({"step": 1, "bytes": 1, "path": "a\0b", "loss": 0.5}),
}


def _array_changes() -> Mapping[str, Node]:
    gzip_codec = {"name": "gzip", "configuration": {"level": 5}}
    bytes_codec = {"name": "bytes", "configuration": {"endian": "little"}}
    return {
        "giant": {"shape": [10**15]},
        "many rows": {"shape": [10**9]},
        "negative": {"shape": [-1]},
        "of words": {"shape": ["a"]},
        "giant chunks": {"chunk_grid": _grid([2**50])},
        "no chunks": {"chunk_grid": _grid([0])},
        "chunks of words": {"chunk_grid": {"name": "regular", "configuration": DEEP}},
        "other type": {"data_type": "complex128"},
        "type as dict": {"data_type": {"name": "numpy.datetime64", "configuration": {}}},
        "gzip": {"codecs": [bytes_codec, gzip_codec]},
        "nested codec": {"codecs": _nested(60)},
        "no codecs": {"codecs": []},
        "codec of code": {"codecs": [{"name": "numcodecs.pickle", "configuration": {}}]},
        "dims": {"dimension_names": ["a"]},
        "fill": {"fill_value": "x" * 10_000},
        "attributes": {"attributes": {"units": [1], "usual": "a", "keep_bits": "-3"}},
    }


def _grid(shape: list[int]) -> Node:
    return {"name": "regular", "configuration": {"chunk_shape": shape}}


def _nested(depth: int) -> list[Node]:
    plain = {"name": "bytes", "configuration": {"endian": "little"}}
    inner = plain
    for _ in range(depth):
        shards = {"chunk_shape": [1], "codecs": [inner], "index_codecs": [plain]}
        inner = {"name": "sharding_indexed", "configuration": shards}
    return [inner]


def _of_arrays() -> Iterator[tuple[str, Spoil]]:
    for path in ARRAYS:
        for name, change in _array_changes().items():
            yield f"array {path}: {name}", _stretched(path, change)


def _stretched(path: str, change: Node) -> Spoil:
    """Change one array; a shape or a chunk of one axis replaces the first of several."""

    def spoil(folder: Path) -> None:
        def apply(root: Node) -> None:
            found = root["consolidated_metadata"]["metadata"][path]
            wanted = dict(change)
            if "shape" in wanted:
                wanted["shape"] = [*wanted["shape"], *found["shape"][1:]]
            grid = wanted.get("chunk_grid", {}).get("configuration")
            if isinstance(grid, dict):
                rest = found["chunk_grid"]["configuration"]["chunk_shape"][1:]
                wanted["chunk_grid"] = _grid([*grid["chunk_shape"], *rest])
            found.update(wanted)

        edit(folder, apply)

    return spoil


def _all_rows(group: str, n: int) -> Spoil:
    """Declare that every array along the steps of a group has ``n`` rows."""

    def change(root: Node) -> None:
        for path, found in root["consolidated_metadata"]["metadata"].items():
            if path.startswith(f"{group}/") and "step" in found.get("dimension_names", ()):
                found["shape"] = [n, *found["shape"][1:]]

    return lambda folder: edit(folder, change)


def _bomb(path: str, codec: str) -> Spoil:
    """Replace a chunk by one that is small and decompresses to a gigabyte."""

    def spoil(folder: Path) -> None:
        size = 2**30
        chunk = next((folder / path / "c").rglob("[0-9]*"))
        while chunk.is_dir():
            chunk = next(chunk.iterdir())
        if codec == "blosc":
            frame = bytearray(Blosc(cname="zstd").encode(np.zeros(2**20, np.uint8)))
            frame[4:8] = size.to_bytes(4, "little")
            chunk.write_bytes(frame)
            return
        chunk.write_bytes(b"".join(gzip.compress(bytes(2**20)) for _ in range(size >> 20)))
        first = {"name": "bytes", "configuration": {"endian": "little"}}
        if _is_text(folder, path):
            first = {"name": "vlen-utf8", "configuration": {}}
        node(path, codecs=[first, {"name": codec, "configuration": {"level": 1}}])(folder)

    return spoil


def _is_text(folder: Path, path: str) -> bool:
    root = json.loads((folder / "zarr.json").read_text())
    return bool(root["consolidated_metadata"]["metadata"][path]["data_type"] == "string")


def _of_bytes() -> Iterator[tuple[str, Spoil]]:
    random = np.random.default_rng(0)
    for path in ARRAYS:
        for codec in ("gzip", "blosc"):
            yield f"bomb {path}: {codec}", _bomb(path, codec)
        noise = random.bytes(500)
        yield f"noise {path}", _chunk_bytes(path, noise)
    for path in ARRAYS[:3]:
        yield f"folder for chunk {path}", _chunk_folder(path)
        yield f"link for chunk {path}", _chunk_link(path)


def _chunk_bytes(path: str, content: bytes) -> Spoil:
    def spoil(folder: Path) -> None:
        for chunk in list((folder / path / "c").rglob("[0-9]*")):
            if chunk.is_file():
                chunk.write_bytes(content)

    return spoil


def _chunk_folder(path: str) -> Spoil:
    def spoil(folder: Path) -> None:
        (folder / path / "c/0").unlink()
        (folder / path / "c/0").mkdir()

    return spoil


def _chunk_link(path: str) -> Spoil:
    def spoil(folder: Path) -> None:
        (folder / path / "c/0").unlink()
        (folder / path / "c/0").symlink_to("/etc/hostname")

    return spoil


def _of_steps() -> Iterator[tuple[str, Spoil]]:
    wrong = {
        "below -1": lambda n: range(-5, n - 5),
        "at -1": lambda n: range(-1, n - 1),
        "falling": lambda n: range(n, 0, -1),
        "equal": lambda n: [3] * n,
        "giant": lambda n: [*range(n - 1), 2**62],
        "least": lambda n: [-(2**63), *range(n - 1)],
        "sawtooth": lambda n: [k % 3 for k in range(n)],
    }
    lengths = dict(zip(STEPS, (24, 12, 5, 6, 24, 1), strict=True))
    for path in STEPS:
        for name, make in wrong.items():
            yield f"steps {path}: {name}", numbers(path, list(make(lengths[path])))
        group = path.rpartition("/")[0]
        for n in (10**15, 3 * 10**9, 2**20):
            yield f"rows {group}: {n}", _all_rows(group, n)


def _of_names() -> Iterator[tuple[str, Spoil]]:
    for name, word in UGLY.items():
        modules = ["(root)", word, "1", "2"]
        yield f"name of module: {name}", text("modules/module", modules)
        yield f"name of column: {name}", text("scalars/every_1/module", modules)
        yield f"class: {name}", text("modules/class", [word] * 4)
        yield f"logged name: {name}", text("names/logged/name", [word])
        yield f"title: {name}", root_attrs(title=word)
        yield f"event: {name}", events("user", "", word)
        yield f"kind: {name}", events(word, "")
        yield f"setting: {name}", root_attrs(config=json.dumps({word: word}))
        yield (
            f"long_name: {name}",
            node(
                "scalars/every_1/grad_norm",
                attributes={"long_name": word, "units": word, word: word},
            ),
        )
    yield "many modules", text("scalars/every_1/module", [f"m{i}" for i in range(1024)])
    yield "parents in a ring", numbers("modules/parent", [3, 0, 1, 2])
    yield "parents beyond", numbers("modules/parent", [-1, 10**12, -7, 99])
    yield "giant counts", numbers("modules/n_params", [2**62] * 4)


def _of_root() -> Iterator[tuple[str, Spoil]]:
    for attr in OWN_TEXT:
        for name, content in TEXTS.items():
            yield f"{attr}: {name}", root_attrs(**{attr: content})
    for attr in OWN_VALUES:
        for name, value in VALUES.items():
            yield f"{attr} as {name}", root_attrs(**{attr: value})
    yield "branches: huge", root_attrs(branches=[0] * 200_000)
    yield "branches: falling", root_attrs(branches=[0, -5, 10**30])
    yield "branches: beyond", root_attrs(branches=[0, 2**62])
    yield "deep attributes", root_attrs(deep=json.loads(DEEP))
    yield "many attributes", lambda f: root_attrs(**{f"a{i}": i for i in range(100_000)})(f)
    yield "many groups", _many_groups
    yield "root is a link", _linked_root
    yield "ranks that are links", _linked_ranks
    yield "ranks that are files", _file_ranks
    yield "lock is a pipe", _pipe_lock


def _many_groups(folder: Path) -> None:
    def change(root: Node) -> None:
        nodes = root["consolidated_metadata"]["metadata"]
        for i in range(20_000):
            nodes[f"scalars/g{i}"] = nodes["scalars/every_1"]

    edit(folder, change)


def _linked_root(folder: Path) -> None:
    moved = folder.with_suffix(".moved")
    shutil.move(folder / "zarr.json", moved)
    (folder / "zarr.json").symlink_to(moved)


def _linked_ranks(folder: Path) -> None:
    for rank in range(3):
        (folder / f"rank_{rank:05d}").symlink_to(folder, target_is_directory=True)
    (folder / "zarr.json").unlink()


def _file_ranks(folder: Path) -> None:
    (folder / "rank_00000").write_text("")
    (folder / "rank_99999").mkdir()


def _pipe_lock(folder: Path) -> None:
    (folder / ".lock").unlink(missing_ok=True)
    os.mkfifo(folder / ".lock")


def _of_events() -> Iterator[tuple[str, Spoil]]:
    for kind in KINDS:
        for name, detail in DETAILS.items():
            yield f"event {kind}: {name}", events(kind, detail)
    for name in ("step", "time"):
        yield f"event {name}: least", numbers(f"events/{name}", [-(2**63)] * 7)
        yield f"event {name}: greatest", numbers(f"events/{name}", [2**63 - 1] * 7)


CORPUS: Mapping[str, Spoil] = dict(
    one
    for kind in (_of_arrays, _of_bytes, _of_steps, _of_names, _of_root, _of_events)
    for one in kind()
)
"""All of them, by name."""

DOZEN = (
    "bomb scalars/every_1/grad_norm: gzip",
    "bomb scalars/every_1/module: gzip",
    "steps scalars/every_1/step: below -1",
    "rows scalars/every_1: 1000000000000000",
    "config: many",
    "event checkpoint: no json",
    "event checkpoint: unc path",
    "title: mathtext",
    "title: long",
    "name of module: mathtext",
    "setting: ansi",
    "name of column: null",
    "changed_modules as number",
    "chunks: deep list",
    "branches: huge",
)
"""Representatives that are tried at every run."""
