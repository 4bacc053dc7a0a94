"""Breakpoints: listed, armed, edited and tried on recorded data, in the panel."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypedDict

import numpy as np

from notebook_probe.explorer.parts.part import Click, Part, Seen
from notebook_probe.json_numbers import json_number
from notebook_probe.record.format.source import ROOT
from notebook_probe.run.attach.requests import Request
from notebook_probe.run.breakpoints.conditions import (
    SEVERE,
    AtStep,
    Comparison,
    OnAlert,
    OnError,
    OnNan,
    OnSeries,
    PauseCondition,
    would_pause,
)
from notebook_probe.run.breakpoints.requests import (
    AddBreakpoint,
    BreakpointInfo,
    EditBreakpoint,
    RemoveBreakpoint,
)

__all__ = [
    "BreakClick",
    "BreakRow",
    "BreakpointTrial",
    "Breaks",
    "EditBreakClick",
    "TryBreak",
    "UnbreakClick",
]

Before = Literal["step", "update"]
Sign = Literal[">", "<", ">=", "<=", "crosses"]

TRIAL_S = 1.0
"""A trial reads a whole series: at most so often while the source grows."""
MOST_STEPS = 12
"""Steps of a trial that are written out."""


class BreakRow(TypedDict):
    """Row of one breakpoint."""

    id: int
    kind: str
    text: str
    number: float | None
    """Threshold that can be edited."""
    armed: bool
    pauses: bool
    """True if the training is paused here now."""
    last_step: int
    """Step of the last pause; -1 if there was none."""
    module: str
    quantity: str
    sign: str
    rules: list[str]
    """Rules of an alert breakpoint, or "severe"."""
    note: str


class BreakpointTrial(TypedDict):
    """Present value of a requested series, and where it would have paused."""

    module: str
    quantity: str
    now: float | None
    usual: float | None
    """Median of the series."""
    steps: list[int]
    """The first few."""
    n_steps: int | None
    """Number of steps that would pause; None until a number is typed."""


class BreakClick(TypedDict):
    """Add a breakpoint; fields that its kind does not have are empty."""

    v: int
    type: Literal["break"]
    id: str
    kind: Literal["step", "alert", "series", "nan", "error"]
    module: str
    quantity: str
    sign: Sign
    number: float
    for_rows: int
    rules: list[str]
    """Rules; an empty list means every severe one."""
    before: Before


class EditBreakClick(TypedDict):
    """Arm or disarm one, or give it another number."""

    v: int
    type: Literal["edit_break"]
    id: str
    which: int
    armed: bool | None
    number: float | None


class UnbreakClick(TypedDict):
    """Take one away."""

    v: int
    type: Literal["unbreak"]
    id: str
    which: int


class TryBreak(TypedDict):
    """Request to try a series; an empty quantity ends the trial."""

    v: int
    type: Literal["try_break"]
    module: str
    quantity: str
    sign: Sign
    number: float | None
    """None until one is typed; until then the present and the usual value are reported."""
    for_rows: int


@dataclass(frozen=True, slots=True)
class _RequestedSeries:
    """A requested series and its condition, once known."""

    module: str
    quantity: str
    condition: OnSeries | None


def _condition(click: BreakClick) -> PauseCondition:
    if click["kind"] == "step":
        return AtStep(int(click["number"]))
    if click["kind"] == "alert":
        return OnAlert(tuple(click["rules"]) or (SEVERE,))
    if click["kind"] == "nan":
        return OnNan(click["before"])
    if click["kind"] == "error":
        return OnError()
    comparison = Comparison(click["sign"], click["number"])
    return OnSeries(
        click["module"], click["quantity"], comparison, click["for_rows"], click["before"]
    )


def _asked(message: TryBreak) -> _RequestedSeries:
    module, quantity, number = message["module"], message["quantity"], message["number"]
    if number is None:
        return _RequestedSeries(module, quantity, None)
    comparison = Comparison(message["sign"], number)
    condition = OnSeries(module, quantity, comparison, max(1, message["for_rows"]))
    return _RequestedSeries(module, quantity, condition)


def _break(click: BreakClick) -> Request:
    return AddBreakpoint(_condition(click))


def _edit(click: EditBreakClick) -> Request:
    return EditBreakpoint(click["which"], click["armed"], click["number"])


def _unbreak(click: UnbreakClick) -> Request:
    return RemoveBreakpoint(click["which"])


class Breaks(Part):
    """The breakpoints of a live run; an opened record has none."""

    name: ClassVar = "breaks"
    clicks: ClassVar = {
        "break": Click(BreakClick, _break),
        "edit_break": Click(EditBreakClick, _edit),
        "unbreak": Click(UnbreakClick, _unbreak),
    }
    heard: ClassVar = {"try_break": TryBreak}

    _asked: _RequestedSeries | None = None
    _trial: tuple[_RequestedSeries, int, float, BreakpointTrial] | None = None
    """Request, revision, time and result of the last trial."""

    def hear(self, message: Any) -> None:
        """Take in a request to try a series."""
        self._asked = None
        if message["quantity"]:
            self._asked = _asked(message)

    def state(self, seen: Seen) -> Mapping[str, Any] | None:
        controls, head = self._controls, seen.head
        if controls is None:
            return {"live": False, "rows": [], "paused": None, "traceback": "", "trial": None}
        infos = controls.breakpoint_infos()
        # Several breakpoints may pause it; the panel shows the step at which the last one paused.
        steps = [info.last_step for info in infos if info.pauses]
        paused = (
            {"text": head.pause_reason, "step": max(steps, default=-1)}
            if head.pause_reason
            else None
        )
        return {
            "live": head.state != "finished",
            "rows": [_row(info) for info in infos],
            "paused": paused,
            "traceback": head.traceback,
            "severe": [*controls.severe_rules()],
            "rules": [*controls.rule_names()],
            "trial": self._tried(),
        }

    def _tried(self) -> BreakpointTrial | None:
        asked, last, revision = self._asked, self._trial, self._source.revision
        if asked is None:
            return None
        if last is not None and last[0] == asked:
            # Answered from the last trial while it is young: a growing run would be read at each
            # refresh.
            is_young = time.monotonic() - last[2] < TRIAL_S
            if is_young or last[1] == revision:
                return last[3]
        found = self._read(asked)
        self._trial = asked, revision, time.monotonic(), found
        return found

    def _read(self, asked: _RequestedSeries) -> BreakpointTrial:
        try:
            series = self._source.series(asked.module, asked.quantity)
        except (KeyError, ValueError):  # nothing is recorded of it yet
            steps, values = np.empty(0, np.int64), np.empty(0)
        else:
            steps, values = series.step.values, np.asarray(series.values, np.float64)
        found = None
        if asked.condition is not None:
            rows = zip(steps.tolist(), values.tolist(), strict=True)
            # A breakpoint compares one number: a series of vectors never pauses.
            found = would_pause(asked.condition, rows) if values.ndim == 1 else []
        finite = values[np.isfinite(values)]
        return {
            "module": asked.module,
            "quantity": asked.quantity,
            "now": json_number(values[-1]) if values.ndim == 1 and len(values) else None,
            "usual": json_number(np.median(finite)) if len(finite) else None,
            "steps": (found or [])[:MOST_STEPS],
            "n_steps": None if found is None else len(found),
        }


def _row(info: BreakpointInfo) -> BreakRow:
    condition = info.condition
    series = condition if isinstance(condition, OnSeries) else None
    return {
        "id": info.id,
        "kind": condition.kind,
        "text": condition.text,
        "number": condition.number,
        "armed": info.armed,
        "pauses": info.pauses,
        "last_step": info.last_step,
        "module": ROOT if series is None else series.module,
        "quantity": "" if series is None else series.quantity,
        "sign": "" if series is None else series.comparison.sign,
        "rules": [*condition.rules] if isinstance(condition, OnAlert) else [],
        "note": info.note,
    }
