"""One rule over one stream: rows are read as they arrive, and each finding is returned once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from notebook_probe.alerts.first_rows import FirstLoss, FirstRows
from notebook_probe.alerts.following import FollowedValues, rows_at_a_time, start_row, values_of
from notebook_probe.alerts.rolling import Doubles, median
from notebook_probe.alerts.rounds import JoinedRows, Rounds, joined
from notebook_probe.alerts.rule import Rule, Severity
from notebook_probe.alerts.sentence import sentence
from notebook_probe.alerts.stretch import Stretch
from notebook_probe.errors import RuleError
from notebook_probe.record.format.lookup import recorded_name
from notebook_probe.record.format.loss_names import LOSS
from notebook_probe.record.format.missing import measured
from notebook_probe.record.format.source import ROOT, Steps, StreamView
from notebook_probe.record.views.branches.turns_taken import TurnsTaken

__all__ = ["Onset", "Track"]

BEFORE = 128
"""Rows before the first that are read too, to know how long a condition has held."""

Mask = npt.NDArray[np.bool_]
Indices = npt.NDArray[np.intp]
Cells = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Onset:
    """A condition that has started to hold: at one step, for some modules."""

    step: int
    modules: tuple[str, ...]
    sentence: str
    began: tuple[int, int]
    """The steps between which it began, at the first of the modules."""
    severity: Severity | None = None
    """None for that of the rule."""
    quantities: tuple[str, ...] = ()
    """Recorded names of the series that show it; empty for those of the rule."""


class Track:
    """The rows of one stream under one rule.

    Parameters
    ----------
    rule : Rule
    series : tuple of str
        Recorded names of its quantities.
    stream : StreamView
        Stream of the rule's first quantity.
    first_step : int
        First step of findings; earlier rows are only used as history.
    reported : collection of str
        Modules of which it was said before.
    order : callable
        Returns the indices of labels, in the order for conditions and findings.
    """

    def __init__(
        self,
        rule: Rule,
        series: tuple[str, ...],
        stream: StreamView,
        first_step: int,
        reported: frozenset[str],
        order: Callable[[tuple[str, ...]], Indices],
    ) -> None:
        n_before = rule.window + BEFORE
        self._rule, self._first_step, self._reported = rule, first_step, reported
        self._row = start_row(stream, first_step, n_before)
        self._leading = series[0]
        self._following = [FollowedValues(name, first_step, n_before) for name in series[1:]]
        self._order = order
        self._columns: Indices = np.zeros(0, np.intp)  # measured so far; the others have no part
        self._labels: tuple[str, ...] = ()
        self._before: Steps = np.zeros(0, np.int64)  # step of the newest row of each column
        self._past = [np.empty((0, 0)) for _ in rule.quantities]
        self._past_steps: Steps = np.zeros(0, np.int64)
        self._stretches: dict[str, Stretch] = {}
        self._first_rows = FirstRows(self._leading, "first" in rule.context)
        wants_loss = "first_loss" in rule.context
        self._first_loss = FirstLoss(series[rule.quantities.index(LOSS)] if wants_loss else "")
        self._rounds = Rounds()

    def look(
        self,
        stream: StreamView,
        others: Sequence[StreamView],
        before: int | None,
        turns: TurnsTaken,
    ) -> Iterator[Onset]:
        """Yield the findings in new rows, at steps below ``before``.

        Rows in which modules took turns are one row for each round.
        """
        every, stop = stream.modules, stream.n_rows
        if self._row >= stop:  # of most streams, at most looks
            return
        name, size = recorded_name(self._leading, stream.variables), rows_at_a_time(len(every))
        while self._row < stop:
            steps = stream.steps(self._row, min(self._row + size, stop))
            if before is not None:
                steps = steps[: np.searchsorted(steps, before)]
            if not len(steps):
                return
            end = self._row + len(steps)
            leading = values_of(stream, self._leading, self._row, end)[:, : len(every)]
            self._row = end  # a rule that fails does not see them again
            first = self._first_rows.known(stream, end - len(steps), end)
            rows = self._rounds.join(steps, leading, first, turns.mask(name, steps))
            yield from self._look_at(rows, [stream, *others], every)

    def end(self, stream: StreamView, others: Sequence[StreamView]) -> Iterator[Onset]:
        """Yield the findings in a round that is not complete: nothing more comes."""
        every, rounds = stream.modules, self._rounds.end()
        if rounds:
            yield from self._look_at(joined(rounds, len(every)), [stream, *others], every)

    def _look_at(
        self, rows: JoinedRows, streams: Sequence[StreamView], every: tuple[str, ...]
    ) -> Iterator[Onset]:
        if not len(rows.steps):
            return
        present = measured(rows.values)
        begun = self._widen(every, present)
        series = [one.at(streams, rows.steps, self._labels) for one in self._following]
        for table in series:  # what one module is compared with counts from its first value on
            table[~(np.logical_or.accumulate(present[:, self._columns]) | begun)] = np.nan
        if self._labels:
            here = self._columns
            chosen = JoinedRows(
                rows.steps, rows.values[:, here], rows.at[:, here], rows.first[:, here]
            )
            tables = [chosen.values.astype(np.float64), *series]
            loss = self._first_loss.at(streams, rows.steps)
            yield from self._evaluate(chosen, present[:, here], tables, loss)

    def _widen(self, every: tuple[str, ...], present: Mask) -> Mask:
        """Modules have been measured for the first time; tells which of all had been before."""
        old = np.zeros(len(every), bool)
        old[self._columns] = True
        some: Mask = old | present.any(axis=0)
        if some.sum() == len(self._columns):
            return np.ones(len(self._columns), bool)
        order = self._order(every)
        self._columns = order[some[order]]
        self._labels = tuple(every[column] for column in self._columns)
        begun: Mask = old[self._columns]
        for i, past in enumerate(self._past):
            self._past[i] = np.full((len(past), len(begun)), np.nan)
            self._past[i][:, begun] = past
        before, self._before = self._before, np.full(len(begun), -1, np.int64)
        self._before[begun] = before
        return begun

    def _evaluate(
        self, rows: JoinedRows, present: Mask, tables: Sequence[Doubles], loss: Doubles
    ) -> Iterator[Onset]:
        """Ask the condition about new rows, with those before them."""
        rule, n_past = self._rule, len(self._past[0])
        known = [np.concatenate([past, new]) for past, new in zip(self._past, tables, strict=True)]
        # No more than the window: memory stays the same for a run of any length.
        self._past = [table[max(0, len(table) - rule.window) :] for table in known]
        # Rules compute with NaN and infinity on purpose: these are what they look for.
        with np.errstate(all="ignore"):
            returned = rule.condition(
                *known, **rule.thresholds, **self._context(rows.steps, rows.first, loss)
            )
        mask, extra = returned if isinstance(returned, tuple) else (returned, {})
        hits = np.asarray(mask)
        if hits.shape not in (known[0].shape, known[0].shape[:1]):
            raise RuleError(
                f"rule {rule.name} returned {hits.shape} for (row, module) = {known[0].shape}"
            )
        if hits.dtype != bool:
            raise RuleError(f"rule {rule.name} returned {hits.dtype}; a mask of bools is expected")
        before, self._before = self._before, _newest(rows.at, present, self._before)
        new = _Evaluated(
            at=rows.at,
            hits=hits[n_past:],
            labels=self._labels,
            tables=tables,
            extra=_from(extra, n_past),
            present=present,
            before=before,
        )
        yield from self._findings(new if hits.ndim == 2 else new.as_a_whole())

    def _context(self, steps: Steps, first: Doubles, loss: Doubles) -> dict[str, Any]:
        """Return what the condition wants to know of the rows."""
        known = np.concatenate([self._past_steps, steps])
        n_past = len(self._past_steps)
        self._past_steps = known[max(0, len(known) - self._rule.window) :]
        row = np.maximum(np.arange(-n_past, len(steps)), 0)
        every = {"at": known, "first": first[row], "first_loss": loss[row]}
        return {name: every[name] for name in self._rule.context}

    def _findings(self, new: _Evaluated) -> Iterator[Onset]:
        found: dict[int, list[tuple[int, tuple[int, int]]]] = {}
        hits = new.hits & new.present
        some: Mask = np.any(hits, axis=0, keepdims=True)
        for column, label in enumerate(new.labels):
            if some[0, column] or label in self._stretches:
                for row, began in self._advanced(new, column, hits[:, column]):
                    found.setdefault(row, []).append((column, began))
        for row, columns in sorted(found.items()):
            columns.sort(key=lambda one: one[1][1])  # those of one step stay in the order of flow
            modules = tuple(new.labels[column] for column, _ in columns)
            first, began = columns[0]
            sentence = self._sentence(new, row, first, began[1])
            step = max(int(new.at[row, column]) for column, _ in columns)
            yield Onset(step, modules, sentence, began)

    def _advanced(
        self, new: _Evaluated, column: int, hits: Mask
    ) -> Iterator[tuple[int, tuple[int, int]]]:
        """Rows at which one module's stretch is long enough and was not reported, and its begin."""
        label = new.labels[column]
        stretch = self._stretches.get(label)
        if stretch is None:
            stretch = self._stretches[label] = Stretch(reported=label in self._reported)
        # Reported once and never again: the rows need not be walked.
        if stretch.reported and self._rule.again is None:
            return
        if not hits.any():
            stretch.rest(int(new.present[:, column].sum()))
            return
        before = int(new.before[column])
        for row in np.flatnonzero(new.present[:, column]):
            step = int(new.at[row, column])
            if not hits[row]:
                stretch.rest(1)
            elif stretch.hold(step, before, self._rule, tells=step >= self._first_step):
                yield int(row), stretch.began
            before = step

    def _sentence(self, new: _Evaluated, row: int, column: int, since: int) -> str:
        rule, step = self._rule, int(new.at[row, column])
        numbers: dict[str, Any] = dict(rule.thresholds)
        named = zip(rule.quantities, new.tables, strict=True)
        numbers |= {name: new.number(table, row, column) for name, table in named}
        numbers |= {name: float(table[row, column]) for name, table in new.extra.items()}
        words = {"step": step, "since": since, "steps_held": step - since}
        return sentence(rule.says, numbers | words)


@dataclass(frozen=True, slots=True)
class _Evaluated:
    """New rows, and the results of the condition on them."""

    at: Cells
    """Step of each cell."""
    hits: Mask
    labels: tuple[str, ...]
    tables: Sequence[Doubles]
    """Tables of the quantities."""
    extra: Mapping[str, Doubles]
    present: Mask
    """Measured cells of the first quantity."""
    before: Steps
    """Step of the last measured row before these, for each module; -1 if there is none."""

    is_whole: bool = False
    """The condition is about the model, not about one module."""

    def as_a_whole(self) -> _Evaluated:
        """Return one column, for the whole model."""
        extra = {name: table[:, None] for name, table in self.extra.items()}
        anywhere: Mask = np.any(self.present, axis=1, keepdims=True)
        before = self.before.max(initial=-1, keepdims=True)
        hits = self.hits[:, None]
        at = self.at.max(axis=1, keepdims=True)
        return _Evaluated(
            at=at,
            hits=hits,
            labels=(ROOT,),
            tables=self.tables,
            extra=extra,
            present=anywhere,
            before=before,
            is_whole=True,
        )

    def number(self, table: Doubles, row: int, column: int) -> float:
        """Return a quantity's number for a sentence: its value, or the median of the modules."""
        return float(median(table[row], axis=0) if self.is_whole else table[row, column])


def _from(extra: Mapping[str, Any], row: int) -> dict[str, Doubles]:
    return {name: np.asarray(table, np.float64)[row:] for name, table in extra.items()}


def _newest(at: Cells, present: Mask, before: Steps) -> Steps:
    """Return the step of the newest measurement of each module."""
    row = len(at) - 1 - np.argmax(present[::-1], axis=0)
    return np.where(present.any(axis=0), at[row, np.arange(at.shape[1])], before)
