"""Findings of checks, and the report that lists them."""

from __future__ import annotations

import html
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

__all__ = ["Examination", "Finding", "Verdict"]

Verdict = Literal["wrong", "note", "unknown", "good"]

WORST_FIRST: dict[Verdict, str] = {
    "wrong": "wrong",
    "note": "may be intended",
    "unknown": "not checked",
    "good": "good",
}
"""Verdicts in the order of a report, as they are counted in its first line."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer of one check.

    Attributes
    ----------
    check : str
        Name of the check, such as ``"evaluation repeats"``.
    verdict : {"wrong", "note", "unknown", "good"}
        A note is a fact that may be intended. Unknown is what could not be checked.
    text : str
        One sentence.
    advice : str
        A line of code to try, or "".
    """

    check: str
    verdict: Verdict
    text: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Examination(Sequence[Finding]):
    """A report of findings, the worst first.

    Examples
    --------
    >>> Examination.of([Finding("causality", "good", "no output depends on a later position")])
    1 good
    good     causality: no output depends on a later position
    """

    findings: tuple[Finding, ...]

    @classmethod
    def of(cls, findings: Sequence[Finding]) -> Examination:
        """Return a report of findings in any order."""
        order = [*WORST_FIRST]
        return cls(tuple(sorted(findings, key=lambda one: order.index(one.verdict))))

    @property
    def wrong(self) -> tuple[Finding, ...]:
        """Findings that no healthy training has."""
        return tuple(one for one in self.findings if one.verdict == "wrong")

    @property
    def title(self) -> str:
        """Number of findings of each verdict, as text."""
        counts = Counter(one.verdict for one in self.findings)
        found = [f"{counts[one]} {text}" for one, text in WORST_FIRST.items() if counts[one]]
        return ", ".join(found) or "nothing was checked"

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values, for JSON."""
        return {"title": self.title, "findings": [asdict(one) for one in self.findings]}

    def to_json(self) -> str:
        """Return all of it as JSON."""
        return json.dumps(self.to_dict(), indent=2)

    def __len__(self) -> int:
        return len(self.findings)

    def __getitem__(self, place: Any) -> Any:
        return self.findings[place]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __repr__(self) -> str:
        return "\n".join([self.title, *map(_line, _merged(self.findings))])

    def _repr_html_(self) -> str:
        rows = "".join(map(_row, _merged(self.findings)))
        return f"<p>{html.escape(self.title)}</p><table>{rows}</table>"


def _merged(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield one line for checks with the same answer, such as the error of a model."""
    names: dict[tuple[Verdict, str, str], list[str]] = {}
    for one in findings:
        names.setdefault((one.verdict, one.text, one.advice), []).append(one.check)
    for (verdict, text, advice), checks in names.items():
        yield Finding(", ".join(checks), verdict, text, advice)


def _line(one: Finding) -> str:
    advice = f"\n         try: {one.advice}" if one.advice else ""
    return f"{one.verdict:8} {one.check}: {one.text}{advice}"


def _row(one: Finding) -> str:
    advice = f"<br><code>{html.escape(one.advice)}</code>" if one.advice else ""
    cells = html.escape(one.verdict), html.escape(one.check), html.escape(one.text) + advice
    return "<tr>{}</tr>".format("".join(f"<td>{cell}</td>" for cell in cells))
