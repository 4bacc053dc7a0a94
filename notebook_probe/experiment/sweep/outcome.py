"""Outcome of one configuration, in its folder."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

__all__ = [
    "FAILED",
    "FINISHED",
    "NONFINITE",
    "OUTPUT",
    "Outcome",
    "forget_outcome",
    "plain",
    "read_outcome",
    "write_outcome",
]

FINISHED, FAILED = "finished", "failed"
NONFINITE = ("nan", "inf", "-inf")
"""Texts of the numbers that JSON does not have."""
OUTCOME = "outcome.json"
OUTPUT = "output.txt"
"""File with the output of a training."""


@dataclass(frozen=True)
class Outcome:
    """Outcome of one training.

    Attributes
    ----------
    state : str
        ``"finished"`` or ``"failed"``.
    result : mapping
        Value that the function returned: numbers and text by name.
    record : str
        Location of the record, as the function returned it.
    error : str
        Kind and first line of the error; empty if the configuration finished.
    traceback : str
    duration_s : float
    """

    state: str
    result: Mapping[str, Any] = field(default_factory=dict)
    record: str = ""
    error: str = ""
    traceback: str = ""
    duration_s: float = 0.0


def read_outcome(folder: Path) -> Outcome | None:
    """Return the outcome in a folder; None if it cannot be read."""
    try:
        found = json.loads((folder / OUTCOME).read_text(encoding="utf-8"))
        return Outcome(**found)
    except (OSError, ValueError, TypeError):
        return None


def write_outcome(folder: Path, outcome: Outcome) -> None:
    """Write an outcome to a folder, atomically."""
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{OUTCOME}.partial"
    partial.write_text(json.dumps(asdict(outcome)), encoding="utf-8")
    partial.replace(folder / OUTCOME)


def forget_outcome(folder: Path) -> None:
    """Delete the outcome, so that it is trained again."""
    (folder / OUTCOME).unlink(missing_ok=True)


def plain(value: Any) -> Any:
    """Return a value as JSON; other objects become text."""
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):  # of numpy or torch
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
