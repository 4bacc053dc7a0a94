"""What a view makes of the frames that it is sent, written anew from what `wire.Layout` says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Sent = tuple[Mapping[str, Any], Sequence[memoryview]]
Whole = tuple[Mapping[str, Any], Sequence[memoryview | bytes]]


def gone_on(sent: Sent, last: Whole) -> tuple[dict[str, Any], list[bytes]]:
    """A frame of which only the news were sent."""
    news, [tail] = sent
    old, old_buffers = last
    assert old["seq"] == news["base"]
    message = {**old, **{k: v for k, v in news.items() if k not in ("base", "kept")}}
    rest, buffers = bytes(tail), []
    for place, (groups, kept) in enumerate(zip(message["layout"], news["kept"], strict=True)):
        rows: list[bytes] = []
        for group, ((n_rows, size), front) in enumerate(zip(groups, kept, strict=True)):
            for row in range(n_rows):
                known = row_of(old, old_buffers, place, group, row)[:front] if front else b""
                rows.append(known + rest[: size - front])
                rest = rest[size - front :]
        buffers.append(b"".join(rows))
    assert rest == b""
    return message, buffers


def row_of(
    message: Mapping[str, Any],
    buffers: Sequence[memoryview | bytes],
    place: int,
    group: int,
    row: int,
) -> bytes:
    before = sum(n_rows * size for n_rows, size in message["layout"][place][:group])
    size = message["layout"][place][group][1]
    return bytes(buffers[place])[before + row * size : before + (row + 1) * size]
