"""TensorBoard: event files, of which several in one folder are one run."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from notebook_probe.old_runs.formats.histogram_proto import proto_bins, tensor_bins
from notebook_probe.old_runs.formats.image_proto import image_of, images_of
from notebook_probe.old_runs.formats.old_format import OldFormat
from notebook_probe.old_runs.formats.plain_yaml import read_yaml
from notebook_probe.old_runs.formats.protobuf import BYTES, Field, double, fields, signed, text
from notebook_probe.old_runs.formats.tensor_proto import scalar_of
from notebook_probe.old_runs.formats.tfrecord import is_first_record, records_of
from notebook_probe.old_runs.points import Points
from notebook_probe.old_runs.run import OldRun

__all__ = ["TensorBoardFormat"]

EVENTS = ".tfevents."
HPARAMS = "hparams"
SCALARS = "scalars"
HISTOGRAMS = "histograms"
IMAGES = "images"
SETTINGS = "hparams.yaml"
"""File in which Lightning's logger puts the settings."""
TIME = re.compile(r"\d{9,11}\.\d+")


class TensorBoardFormat(OldFormat):
    """Event files with scalars and settings; each record has checksums."""

    tool = "TensorBoard"

    def in_file(self, path: Path, head: bytes) -> bool:
        return is_first_record(head)

    def in_folder(self, folder: Path, names: Sequence[str]) -> tuple[Path, ...]:
        files = sorted(folder / name for name in names if EVENTS in name)
        events = [file for file in files if file.is_file()]
        if not events:
            return ()
        # PyTorch's add_hparams writes the settings into a folder that is named after the time.
        for name in filter(TIME.fullmatch, names):
            events += sorted(file for file in (folder / name).iterdir() if EVENTS in file.name)
        return (*events, *([folder / SETTINGS] if SETTINGS in names else []))

    def read(self, files: Sequence[Path], key: str, points: Points) -> OldRun:
        config: dict[str, Any] = {}
        begun = 0.0
        name = files[0].absolute().parent.name
        for file in files:
            if file.name == SETTINGS:
                config.update(read_yaml(file, points))
                continue
            with points.reading(file.name):
                for event in records_of(file, points.allowance):
                    time_ms = _add_event(event, points, config)
                    begun = begun or time_ms
        return OldRun(
            self.tool, name, series=points.series(), config=config, created_ms=round(begun)
        )


def _add_event(event: bytes, points: Points, config: dict[str, Any]) -> float:
    """Add the numbers of an event; returns its time in milliseconds."""
    wall, step, values = 0.0, 0, []
    for number, kind, value in fields(event):
        if number == 1:
            wall = double(value)
        elif number == 2:
            step = signed(value)
        elif number == 5 and kind == BYTES:
            values += [one for field, _, one in fields(_bytes(value)) if field == 1]
    time_ms = wall * 1000.0 if 0 < wall < 1e12 else 0.0
    for one in values:
        _add_value([*fields(_bytes(one))], step, time_ms, points, config)
    return time_ms


def _add_value(
    parts: Sequence[Field], step: int, time_ms: float, points: Points, config: dict[str, Any]
) -> None:
    found = {number: value for number, _, value in parts}
    tag = text(found.get(1, b""))
    if 2 in found:
        points.add(tag, step, time_ms, struct.unpack("<f", _bytes(found[2]))[0])
        return
    if 4 in found:
        points.images.add(tag, step, time_ms, image_of(_bytes(found[4])))
        return
    if 5 in found:
        edges, counts = proto_bins(_bytes(found[5]))
        points.histograms.add(tag, step, time_ms, edges, counts)
        return
    plugin, content = _plugin(_bytes(found.get(9, b"")))
    if plugin == HPARAMS:
        config.update(_settings(content))
    elif 8 in found and plugin == HISTOGRAMS:
        edges, counts = tensor_bins(_bytes(found[8]))
        points.histograms.add(tag, step, time_ms, edges, counts)
    elif 8 in found and plugin == IMAGES:
        for n, encoded in enumerate(images_of(_bytes(found[8]))):
            points.images.add(f"{tag}_{n}" if n else tag, step, time_ms, encoded)
    elif 8 in found and plugin in (SCALARS, ""):
        number = scalar_of(_bytes(found[8]))
        if number is not None:
            points.add(tag, step, time_ms, number)


def _plugin(metadata: bytes) -> tuple[str, bytes]:
    """Return the name of the plugin that shows a value, and the plugin's own data."""
    data = next((_bytes(value) for number, _, value in fields(metadata) if number == 1), b"")
    found = {number: value for number, _, value in fields(data)}
    return text(found.get(1, b"")), _bytes(found.get(2, b""))


def _settings(content: bytes) -> Iterator[tuple[str, Any]]:
    """Yield the settings of the session that starts, if it is one."""
    for number, _, start in fields(content):
        if number == 3:  # session_start_info
            for field, _, entry in fields(_bytes(start)):
                if field == 1:
                    pair = {place: value for place, _, value in fields(_bytes(entry))}
                    yield text(pair.get(1, b"")), _setting(_bytes(pair.get(2, b"")))


def _setting(value: bytes) -> Any:
    """Return a `google.protobuf.Value`: a number, text, bool or None."""
    for number, _, one in fields(value):
        if number == 2:
            return double(one)
        if number == 3:
            return text(one)
        if number == 4:
            return bool(one)
    return None


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise ValueError("a number where bytes are expected")
    return value
