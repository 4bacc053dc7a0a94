"""The list of a folder's checkpoints: which there are, of which line, with which numbers."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from notebook_probe.errors import CheckpointError

__all__ = ["NAME", "Checkpoint", "CheckpointIndex"]

NAME = "checkpoints.json"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """One checkpoint: its state, its location, and its metrics.

    Attributes
    ----------
    step : int
        Updates completed.
    path : str
    metrics : dict
        Metrics of the saved state itself: of the step that led to it, and of its evaluations.
    line : int
        Grows where a training continues from an earlier checkpoint.
    pinned : bool
        Kept whatever the rules say.
    saved_at : float
        Seconds since 1970 UTC; 0 where it was written before that was noted.
    """

    step: int
    path: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    line: int = 1
    pinned: bool = False
    saved_at: float = 0.0

    @property
    def name(self) -> str:
        """Name of the file."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class CheckpointIndex:
    """Checkpoints in the order in which they were saved.

    It is written before a new file gets its name and after old files were removed. So it may list
    missing files, which are ignored, and lists every existing one.

    Attributes
    ----------
    entries : tuple of Checkpoint
    lines : tuple of (int, int)
        Parent line of each line (0 for none), and the step at which it branches off.
    """

    entries: tuple[Checkpoint, ...] = ()
    lines: tuple[tuple[int, int], ...] = ()

    @classmethod
    def parsed(cls, content: bytes | None, place: str, there: Collection[str]) -> CheckpointIndex:
        """Read what `text` wrote; of existing files."""
        if content is None:
            return cls()
        try:
            found = json.loads(content)
            entries = [_entry(place, **entry) for entry in found["checkpoints"]]
            lines = tuple((int(parent), int(step)) for parent, step in found["lines"])
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"{place}/{NAME} is no list of checkpoints: {type(error).__name__}: {error}"
            ) from error
        return cls(tuple(entry for entry in entries if entry.name in there), lines)

    def text(self) -> bytes:
        """Return the index as JSON, readable for anyone."""
        entries = [
            {
                "file": entry.name,
                "step": entry.step,
                "line": entry.line,
                "pinned": entry.pinned,
                "saved_at": entry.saved_at,
                "metrics": dict(entry.metrics),
            }
            for entry in self.entries
        ]
        found = {"format": FORMAT, "checkpoints": entries, "lines": self.lines}
        return json.dumps(found, indent=1).encode()

    def begun(self, parent: int, step: int) -> CheckpointIndex:
        """Return the index with one more line."""
        return replace(self, lines=(*self.lines, (parent, step)))

    def added(self, entry: Checkpoint) -> CheckpointIndex:
        """Return the index with one more entry, replacing one with the same file."""
        others = tuple(other for other in self.entries if other.name != entry.name)
        return replace(self, entries=(*others, entry))

    def amended(self, known: Checkpoint, metrics: Mapping[str, float]) -> CheckpointIndex:
        """Return the index with more metrics of one checkpoint."""
        amended = replace(known, metrics={**known.metrics, **metrics})
        return replace(
            self, entries=tuple(amended if one == known else one for one in self.entries)
        )

    def without(self, gone: Collection[Checkpoint]) -> CheckpointIndex:
        return replace(self, entries=tuple(one for one in self.entries if one not in gone))

    def of_line(self, line: int) -> list[Checkpoint]:
        """Return the checkpoints in the history of a line, by step."""
        most = dict(self._ancestry(line))
        own = (one for one in self.entries if one.line in most and one.step <= most[one.line])
        return sorted(own, key=lambda one: one.step)

    def _ancestry(self, line: int) -> Iterator[tuple[int, float]]:
        """Yield lines and the step up to which each belongs to the history of this one."""
        most = float("inf")
        # Lines are numbered from 1; the first has no parent, which is 0.
        while line:
            yield line, most
            line, step = self.lines[line - 1]
            most = min(most, step)


def _entry(place: str, file: str, **values: Any) -> Checkpoint:
    # The list is a file that anyone can write: a name must not lead out of the folder.
    if "/" in file or "\\" in file or file.startswith("."):
        raise ValueError(f"{file!r} is no file of its folder")
    return Checkpoint(path=f"{place}/{file}", **values)
