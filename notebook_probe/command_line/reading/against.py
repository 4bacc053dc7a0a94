"""Comparison with good runs, as part of ``explain``."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator

from notebook_probe.command_line.asked import location_of
from notebook_probe.command_line.reading.answers import AgainstAnswer, DifferenceLine
from notebook_probe.command_line.reading.printing import fitting_items, number, wrapped
from notebook_probe.compare.reference.differences import (
    ReferenceDifference,
    ReferenceDifferences,
)
from notebook_probe.opened import OpenedRun
from notebook_probe.record.format.source import ROOT

__all__ = ["against_lines", "compared_with"]

MOST_DIFFERENCES = 10
MOST_NOTES = 3
PATTERN = "*?["


def compared_with(run: OpenedRun, asked: Namespace) -> AgainstAnswer | None:
    """Return how a run differs from good ones, up to the step of ``--step``; None without them."""
    if not asked.against:
        return None
    places = [one if {*PATTERN} & {*one} else location_of(one, asked) for one in asked.against]
    differences = run.find_differences(places)
    found = [one for one in differences if asked.step is None or one.step <= asked.step]
    lines, n_left = fitting_items(
        found, _difference, lambda one: [_difference_text(one)], asked.limit, 0, MOST_DIFFERENCES
    )
    last = differences.last_step
    return AgainstAnswer(
        verdict=_verdict(differences, found, asked.step),
        good=differences.references,
        differences=lines,
        left_out=n_left,
        models=differences.modules,
        compared=differences.compared,
        skipped=differences.skipped,
        last_step=last if asked.step is None else min(last, asked.step),
    )


def against_lines(answer: AgainstAnswer, limit: int) -> Iterator[str]:
    """Yield the verdict and the differences."""
    yield answer.verdict
    yield from map(_difference_text, answer.differences)
    if answer.left_out:
        yield f"  {answer.left_out} more differences; --limit 0 prints all"
    most = MOST_NOTES if limit else len(answer.models)
    yield from (f"  {one}" for one in answer.models[:most])
    if len(answer.models) > most:
        yield f"  {len(answer.models) - most} more modules are of another class or size"
    yield f"compared up to step {answer.last_step}:"
    yield from wrapped([", ".join(answer.compared) or "nothing"])
    for one in answer.skipped[: MOST_NOTES if limit else None]:
        yield f"not compared: {one}"


def _verdict(
    differences: ReferenceDifferences, found: list[ReferenceDifference], step: int | None
) -> str:
    if found or not differences.found:
        return differences.title
    return f"No difference from {differences.named} up to step {step}"


def _difference(one: ReferenceDifference) -> DifferenceLine:
    return DifferenceLine(
        module=one.module or ROOT,
        quantity=one.quantity,
        step=one.step,
        ratio=None if one.is_absent else float(f"{10.0**one.distance:.6g}"),
        here=one.here,
        there=one.there,
        began=one.began,
        rows=one.n_rows,
    )


def _difference_text(one: DifferenceLine) -> str:
    far = "no value" if one.ratio is None else f"ratio {number(one.ratio)}"
    values = f"{number(one.here)} against {number(one.there)}"
    return f"- step {one.step}: {one.module} {one.quantity}: {far}, {values}"
