"""One table and one JSON file of what the parts of a run have found."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Outcome", "failed", "read", "table", "write"]

CASE = re.compile(r"^(tests/\S+::.+?) (PASSED|FAILED|ERROR|SKIPPED)\b", re.MULTILINE)
"""A line of pytest's verbose output."""


@dataclass(frozen=True)
class Outcome:
    """What one part has done.

    Attributes
    ----------
    name, result : str
        The part, and ``"green"``, ``"failed"``, ``"too long"`` or ``"no time left"``.
    seconds : float
    found : dict
        What it wrote: counts of tests, rows of a benchmark, the card.
    """

    name: str
    result: str
    seconds: float
    found: dict[str, Any] = field(default_factory=dict)


def read(name: str, folder: Path) -> dict[str, Any]:
    """Return what a part has written so far, also if it was ended; nothing where that is nothing.

    What it measured is JSON; of tests the output says which passed.
    """
    try:
        if (folder / f"{name}.json").is_file():
            found = json.loads((folder / f"{name}.json").read_text("utf-8"))
            return found if isinstance(found, dict) else {"rows": found}
        return _counts((folder / f"{name}.txt").read_text("utf-8", errors="replace"))
    except (OSError, ValueError):
        return {}


def _counts(output: str) -> dict[str, Any]:
    """Counts of cases by result, and the names of those that failed."""
    cases = dict(CASE.findall(output))
    counts = Counter(cases.values())
    if not counts:
        return {}
    broken = [case for case, result in cases.items() if result in ("FAILED", "ERROR")]
    return {
        "tests": len(cases),
        "passed": counts["PASSED"],
        "skipped": counts["SKIPPED"],
        "failed": len(broken),
        "failed_cases": broken,
    }


def failed(outcomes: Sequence[Outcome]) -> bool:
    """Tell whether a check failed, or could not be made."""
    missed = any(_missed(outcome.found) for outcome in outcomes)
    return missed or any(outcome.result != "green" for outcome in outcomes)


def _missed(found: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of a benchmark that missed their target."""
    return [row for row in found.get("rows", ()) if row.get("met") == "NO"]


def table(outcomes: Sequence[Outcome]) -> str:
    """Return a line for each part, then the rows of the benchmark and the failed cases."""
    lines = ["| part | result | seconds | found |", "|---|---|--:|---|"]
    lines += [
        f"| {one.name} | {one.result} | {one.seconds:.0f} | {_summary(one.found)} |"
        for one in outcomes
    ]
    rows = [row for one in outcomes for row in one.found.get("rows", ())]
    if rows:
        heads = [*dict.fromkeys(key for row in rows for key in row)]
        lines += ["", f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
        lines += [f"| {' | '.join(_cell(row.get(head, '')) for head in heads)} |" for row in rows]
    cases = [case for one in outcomes for case in one.found.get("failed_cases", ())]
    if cases:
        lines += ["", "failed:", *(f"* {case}" for case in cases)]
    return "\n".join(lines)


def _summary(found: dict[str, Any]) -> str:
    if "rows" in found:
        return f"{len(found['rows'])} rows, {len(_missed(found))} targets missed"
    if "tests" in found:
        return f"{found['passed']} passed, {found['failed']} failed, {found['skipped']} skipped"
    return ", ".join(f"{found[key]}" for key in ("card", "memory_gib", "torch") if key in found)


def _cell(value: Any) -> str:
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def write(outcomes: Sequence[Outcome], folder: Path) -> None:
    """Write table and JSON; after each part, so that a run that is cut off has told most."""
    rows = [vars(outcome) for outcome in outcomes]
    (folder / "gpu.json").write_text(json.dumps(rows, indent=1), "utf-8")
    (folder / "table.md").write_text(table(outcomes) + "\n", "utf-8")
