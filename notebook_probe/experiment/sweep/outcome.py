"""What became of one configuration, as its folder tells it."""

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
    "OUTPUT",
    "Outcome",
    "forget_outcome",
    "plain",
    "read_outcome",
    "write_outcome",
]

FINISHED, FAILED = "finished", "failed"
OUTCOME = "outcome.json"
OUTPUT = "output.txt"
"""What a training has printed."""


@dataclass(frozen=True)
class Outcome:
    """How one training ended.

    Attributes
    ----------
    state : str
        ``"finished"`` or ``"failed"``.
    result : mapping
        What the function returned: numbers and text by name.
    record : str
        Where the function said that its record is.
    error : str
        Its last line; empty where it finished.
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
    """The one in a folder; None where there is none that can be read."""
    try:
        found = json.loads((folder / OUTCOME).read_text(encoding="utf-8"))
        return Outcome(**found)
    except (OSError, ValueError, TypeError):
        return None


def write_outcome(folder: Path, outcome: Outcome) -> None:
    """Put it in a folder, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f"{OUTCOME}.partial"
    partial.write_text(json.dumps(asdict(outcome)), encoding="utf-8")
    partial.replace(folder / OUTCOME)


def forget_outcome(folder: Path) -> None:
    """It is to be trained again."""
    (folder / OUTCOME).unlink(missing_ok=True)


def plain(value: Any) -> Any:
    """As JSON has it; of what it has not, the text."""
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):  # of numpy or torch
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
