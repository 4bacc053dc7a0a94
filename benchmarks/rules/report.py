"""What is printed of the trainings, of the rules, and of all of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.rules.recipe import PARTS
from benchmarks.rules.runner import Said
from benchmarks.rules.verdict import AT_MOST, WITHIN, Verdict
from benchmarks.table import Table

__all__ = ["line", "print_rules", "print_totals"]


def line(verdict: Verdict, twin: Verdict | None) -> str:
    """One training: what was said of it, where and when, and whether it is what it says it is."""
    said = ", ".join(
        f"{kind}{_in_words(found)}"
        for kind, found in (
            ("", verdict.right),
            ("remark: ", verdict.remarked),
            ("false: ", verdict.false),
            ("follows: ", verdict.follows),
            ("also said: ", verdict.also),
        )
        if found
    )
    outcome, cause = verdict.outcome, verdict.case.recipe.cause
    doubts = [] if _is_what_it_says(verdict, twin) else ["NOT AS PLANTED"]
    planted = f"cause at {cause.step}" if verdict.case.planted else f"error x{outcome.improved:.2g}"
    facts = ", ".join([planted, f"harm {outcome.harm:.3g}", f"{outcome.seconds:.1f} s", *doubts])
    return f"{verdict.word:7}{verdict.case.name} ({facts}): {said or '-'}"


def print_rules(verdicts: Sequence[Verdict]) -> None:
    """A table: each rule that fired, or should have, in each part."""
    table = Table({"part": 5, "rule": 24, "rightly": 7, "falsely": 7, "late": 4, "missed": 6})
    for part in PARTS:
        of_part = [one for one in verdicts if one.case.recipe.part == part]
        for rule in sorted(_rules(of_part)):
            table.row(part, rule, *map(str, _counts(rule, of_part)))


def print_totals(verdicts: Sequence[Verdict]) -> None:
    """How many trainings were judged rightly, in each part and in all."""
    for part in PARTS:
        _print_total(part, [one for one in verdicts if one.case.recipe.part == part])
    _print_total("all", verdicts)


def _print_total(name: str, verdicts: Sequence[Verdict]) -> None:
    healthy = [one for one in verdicts if not one.case.planted]
    spoiled = [one for one in verdicts if one.case.planted]
    n_false = sum(bool(one.false) for one in healthy)
    soon, late = (sum(one.is_named_within(n) for one in spoiled) for n in (WITHIN, AT_MOST))
    told = sum(one.is_told_within(AT_MOST) for one in spoiled)
    early = sum(bool(one.false) for one in spoiled)
    misled = sum(one.misleads for one in spoiled)
    print(
        f"{name}: {n_false} of {len(healthy)} healthy trainings with an alert; of {len(spoiled)} "
        f"causes {soon} named within {WITHIN} steps, {late} within {AT_MOST}, {told} with remarks; "
        f"{misled} with another cause alone; {early} with an alert before the cause"
    )


def _in_words(found: Iterable[Said]) -> str:
    """The first of each rule."""
    first: dict[str, Said] = {}
    for one in found:
        first.setdefault(one.rule, one)
    return ", ".join(f"{one.rule} @{one.step} {one.module}" for one in first.values())


def _is_what_it_says(verdict: Verdict, twin: Verdict | None) -> bool:
    """A healthy training improves; a spoiled one does worse than its healthy twin."""
    if not verdict.case.planted:
        return verdict.outcome.is_healthy
    return twin is None or verdict.outcome.harm > twin.outcome.harm


def _rules(verdicts: Iterable[Verdict]) -> set[str]:
    said = {one.rule for verdict in verdicts for one in verdict.outcome.said}
    return said.union(*(v.case.recipe.cause.names for v in verdicts))


def _counts(rule: str, verdicts: Sequence[Verdict]) -> tuple[int, int, int, int]:
    """Trainings in which it was right, false, late, and missed.

    Missed is a cause that it names and that nothing has named.
    """
    rightly = late = missed = 0
    falsely = sum(any(one.rule == rule for one in verdict.false) for verdict in verdicts)
    for verdict in verdicts:
        cause = verdict.case.recipe.cause
        first = min((one.step for one in verdict.right if one.rule == rule), default=None)
        if first is not None:
            rightly += first <= cause.step + WITHIN
            late += first > cause.step + WITHIN
        elif verdict.case.planted and rule in cause.names:
            missed += not verdict.right
    return rightly, falsely, late, missed
