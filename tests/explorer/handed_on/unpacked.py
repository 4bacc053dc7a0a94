"""A package read as the browser reads it, written once more, in Python."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class Frame:
    message: dict[str, Any]
    buffers: list[bytes]

    def floats(self, place: int) -> npt.NDArray[np.float32]:
        return np.frombuffer(self.buffers[place], "<f4")


@dataclass(frozen=True)
class Unpacked:
    head: dict[str, Any]
    frames: dict[tuple[str, str], Frame]

    def said(self, type: str) -> dict[str, Any]:
        [found] = [one for one in self.head["first"] if one["type"] == type]
        return dict(found)


def unpacked(text: str) -> Unpacked:
    content = base64.b64decode(text, validate=True)
    [n] = struct.unpack("<I", content[:4])
    head = json.loads(zlib.decompress(content[4 : 4 + n]))
    body = content[4 + n :]
    frames = {
        (kind, key): frame(zlib.decompress(body[at : at + size]))
        for kind, key, at, size in head["pieces"]
    }
    return Unpacked(head, frames)


def frame(content: bytes) -> Frame:
    [n] = struct.unpack("<I", content[:4])
    told = json.loads(content[4 : 4 + n])
    at, buffers = 4 + n, []
    for size, kept in told["buffers"]:
        buffers.append(whole(content[at : at + size], kept))
        at += size
    assert at == len(content)
    return Frame(told["message"], buffers)


def whole(content: bytes, kept: int) -> bytes:
    """Bytes of equal rank stand together, the highest first."""
    if kept == 0:
        return content
    planes = np.frombuffer(content, np.uint8).reshape(kept, -1)
    found = np.zeros((planes.shape[1], 4), np.uint8)
    for rank in range(kept):
        found[:, 3 - rank] = planes[rank]
    return found.tobytes()
