"""Run each command that runs by name only, and print one table: ``python -m tools.nightly``.

The commands are the targets ``test-...`` of the Makefile that no change has to pass. The run
continues after one that fails or exceeds its time limit; the outputs are in ``build/nightly``.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tools.limited import run_limited

ROOT = Path(__file__).parents[1]
MAKEFILE = ROOT / "Makefile"
OUTPUTS = ROOT / "build" / "nightly"
DAILY = {"test-changed", "test-docs", "test-python", "test-slow"}
# Minutes after which a part is ended: three times what it takes, or the default.
LIMITS, LIMIT = {"test-stress": 480, "test-release": 60}, 30
COUNTED = ("passed", "failed", "skipped")
SUMMARY = re.compile(r"^=* ?(\d+ [a-z]+(?:, \d+ [a-z]+)*) in [\d.]+s", re.MULTILINE)


@dataclass(frozen=True)
class PartOutcome:
    """What one command has done: how it ended, its counts of tests, its seconds."""

    target: str
    result: str
    counts: Counter[str]
    seconds: float


def targets(makefile: str) -> list[str]:
    """Return the targets that run by name only, in the order of the Makefile."""
    found = re.findall(r"^(test-[\w-]+):", makefile, re.MULTILINE)
    return [target for target in dict.fromkeys(found) if target not in DAILY]


def counts(output: str) -> Counter[str]:
    """Return how many tests passed, failed and were skipped, over all sessions of pytest."""
    found = Counter[str]()
    for summary in SUMMARY.findall(output):
        for number, word in re.findall(r"(\d+) ([a-z]+)", summary):
            found["failed" if word in ("error", "errors") else word] += int(number)
    return found


def run(target: str, limit_s: float, command: Iterable[str] = ("make",)) -> PartOutcome:
    """Run ``make <target>`` with its output in a file; end it and its children at the limit."""
    OUTPUTS.mkdir(parents=True, exist_ok=True)
    path = OUTPUTS / f"{target}.txt"
    result, seconds = run_limited([*command, target], path, limit_s, ROOT)
    return PartOutcome(target, result, counts(path.read_text(errors="replace")), seconds)


def table(outcomes: Iterable[PartOutcome]) -> str:
    """Return the outcomes as a table in Markdown."""
    lines = [f"| command | result | {' | '.join(COUNTED)} | time |", "|---|---|--:|--:|--:|--:|"]
    for outcome in outcomes:
        numbers = " | ".join(str(outcome.counts[word]) for word in COUNTED)
        minutes, seconds = divmod(round(outcome.seconds), 60)
        time_taken = f"{minutes}:{seconds:02} min"
        lines.append(f"| `make {outcome.target}` | {outcome.result} | {numbers} | {time_taken} |")
    return "\n".join(lines)


def main() -> int:
    """Run all commands, or those named; return 1 if one was not green."""
    every = {name.removeprefix("test-"): name for name in targets(MAKEFILE.read_text("utf-8"))}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(every))
    asked = parser.parse_args()
    if unknown := {*asked.parts} - {*every}:
        parser.error(f"no such part: {', '.join(sorted(unknown))}; allowed: {', '.join(every)}")
    outcomes = []
    for part in asked.parts or every:
        target = every[part]
        outcome = run(target, LIMITS.get(target, LIMIT) * 60)
        print(f"{target}: {outcome.result}, {outcome.seconds:.0f} s", flush=True)
        outcomes.append(outcome)
        (OUTPUTS / "table.md").write_text(table(outcomes) + "\n", "utf-8")
    print("\n" + table(outcomes))
    return int(any(outcome.result != "green" for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
