"""Hints in the first panel of a notebook, each until it is closed permanently."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, ClassVar, Literal, TypeAlias, TypedDict, get_args

from notebook_probe.errors import RecordWriteError
from notebook_probe.explorer.parts.part import Part, Seen
from notebook_probe.home import home
from notebook_probe.record.store.destination import new_file
from notebook_probe.record.views.xarray_views import RunSource
from notebook_probe.run.controls import Controls

__all__ = ["ClosedHints", "HintClosed", "HintName", "HintsPart"]

HintName: TypeAlias = Literal["layer", "attach", "alerts"]
"""Topics of the hints, in their order."""

FILE_NAME = "closed_hints.json"
MOST_BYTES = 10_000


class HintClosed(TypedDict):
    """A hint was closed by the user, permanently."""

    v: int
    type: Literal["close_hint"]
    name: HintName


class ClosedHints:
    """Hints that the user has closed, in a file of the user's folder and in this process.

    Attributes
    ----------
    first : str
        Location of the record that the first panel of this process has shown; only panels of it
        have hints.

    Examples
    --------
    >>> closed = ClosedHints()
    >>> closed.close("layer")
    >>> closed.open_ones()
    ['attach', 'alerts']
    """

    def __init__(self) -> None:
        self.first = ""
        self._closed: frozenset[str] | None = None

    def open_ones(self) -> list[HintName]:
        """Return the hints that are not closed."""
        if self._closed is None:
            self._closed = frozenset(_read())
        return [name for name in get_args(HintName) if name not in self._closed]

    def close(self, name: HintName) -> None:
        """Close a hint; in this process alone where the file cannot be written."""
        self._closed = frozenset({*_read(), *(self._closed or ()), name})
        with suppress(RecordWriteError, RuntimeError):
            _write(sorted(self._closed))


closed_hints = ClosedHints()
"""Closed hints of this process."""


class HintsPart(Part):
    """Hints of a live run, if its panel was the first."""

    name: ClassVar = "hints"
    heard: ClassVar = {"close_hint": HintClosed}

    def __init__(self, source: RunSource, controls: Controls | None) -> None:
        super().__init__(source, controls)
        if controls is not None and not closed_hints.first:
            closed_hints.first = source.location

    def state(self, seen: Seen) -> Mapping[str, Any] | None:
        if self._controls is None or self._source.location != closed_hints.first:
            return None
        has_ended = seen.head.state in ("finished", "failed")
        return {"open": [] if has_ended else closed_hints.open_ones()}

    def hear(self, message: HintClosed) -> None:
        closed_hints.close(message["name"])


def _read() -> list[str]:
    """Return the closed hints of the file; none of a damaged or foreign one."""
    try:
        with (home() / FILE_NAME).open("rb") as file:
            found = json.loads(file.read(MOST_BYTES))
    except (OSError, ValueError, RuntimeError):  # no home, no file, or no JSON
        return []
    return [name for name in get_args(HintName) if isinstance(found, list) and name in found]


def _write(names: list[str]) -> None:
    with new_file(home() / FILE_NAME, overwrite=True) as file:
        file.write_text(json.dumps(names), encoding="utf-8")
