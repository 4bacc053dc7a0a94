"""Tests that apply to every alert rule, also users' own."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from notebook_probe.alerts import RULES, Alert, Rule, Watcher
from notebook_probe.quantities import quantities
from notebook_probe.record.format.missing import NOT_MEASURED
from notebook_probe.record.format.source import Floats
from notebook_probe.testing.rows import StreamInMemory, Tables, filled

__all__ = ["RuleSuite"]

UNUSUAL = (math.nan, math.inf, -math.inf, 0.0, -1.0, 3e38, 1e-45)
"""Unusual values of a series, for which a rule must not raise."""

LENGTHS = (0, 1, 2, 40, 300)
PIECES = (1, 7)


class RuleSuite:
    """Tests that every alert rule passes: inherit it, and say which rules are meant.

    Attributes
    ----------
    rules : sequence of Rule or str
    fires, silent : mapping of str to sequence of Tables
        By the name of a rule: series, as ``{quantity: values}``, in which it has to report
        something, and others, best just short of its thresholds, in which nothing is wrong. Values
        are of one module, (row,), or of several, (row, module), one row each step.
    logged : sequence of str
        Logged scalars, in addition to the quantities.

    Examples
    --------
    >>> class TestNorms(RuleSuite):
    ...     rules = ("rank_collapse",)
    ...     fires = {"rank_collapse": [{"effective_rank_share": [0.01] * 3}]}
    ...     silent = {"rank_collapse": [{"effective_rank_share": [0.01, 0.01, 0.5]}]}
    """

    rules: ClassVar[Sequence[Rule | str]] = ()
    fires: ClassVar[Mapping[str, Sequence[Tables]]] = {}
    silent: ClassVar[Mapping[str, Sequence[Tables]]] = {}
    logged: ClassVar[Sequence[str]] = ("loss",)

    def test_it_looks_at_series_that_there_can_be(self) -> None:
        for rule in self._all():
            for name in rule.quantities:
                assert name in quantities or name in self.logged, f"{rule.name}: nothing is {name}"

    def test_what_explains_it_can_be_measured(self) -> None:
        for rule in self._all():
            for name in rule.explained_by:
                assert name in quantities, f"{rule.name}: nothing is {name}"

    def test_it_fires_where_something_is_wrong(self) -> None:
        for rule, tables in self._each(self.fires):
            found = _alerts_of(rule, filled(tables))
            assert found, f"{rule.name} says nothing of {_shortened(tables)}"
            for alert in found:
                _check_sentence(alert)

    def test_it_is_silent_where_nothing_is_wrong(self) -> None:
        for rule, tables in self._each(self.silent):
            found = [str(alert) for alert in _alerts_of(rule, filled(tables))]
            assert not found, f"{_shortened(tables)}: {found[0]}"

    def test_it_is_silent_where_nothing_was_measured(self) -> None:
        for rule in self._all():
            for n_rows in LENGTHS:
                gaps = np.full((n_rows, 2), NOT_MEASURED, np.float32)
                assert not _alerts_of(rule, dict.fromkeys(rule.quantities, gaps)), rule.name

    def test_no_number_makes_it_raise(self) -> None:
        for rule in self._all():
            for n_rows in LENGTHS:
                _alerts_of(rule, _unusual(rule, n_rows))

    def test_it_says_the_same_however_rows_come(self) -> None:
        for rule, tables in self._every_series():
            whole = _words(_alerts_of(rule, tables))
            for size in PIECES:
                pieces = _words(_alerts_of(rule, tables, size))
                assert pieces == whole, (
                    f"{rule.name} depends on rows beyond its window of {rule.window}"
                )

    def test_modules_that_are_not_measured_change_nothing(self) -> None:
        for rule, tables in self._every_series():
            wider = {
                name: np.pad(table, ((0, 0), (0, 1)), constant_values=NOT_MEASURED)
                for name, table in tables.items()
            }
            assert _words(_alerts_of(rule, wider)) == _words(_alerts_of(rule, tables)), rule.name

    def test_it_is_said_once_of_a_module(self) -> None:
        for rule, tables in self._every_series():
            if rule.again is None:
                found = [module for alert in _alerts_of(rule, tables) for module in alert.modules]
                assert len(found) == len(set(found)), f"{rule.name} repeats itself"

    def test_what_was_said_is_not_said_again_by_a_training_that_goes_on(self) -> None:
        for rule, tables in self._every_series():
            earlier = _alerts_of(rule, tables)
            if earlier and rule.again is None:
                assert not _alerts_of(rule, tables, earlier=earlier), rule.name

    def test_its_thresholds_can_be_changed(self) -> None:
        for rule in self._all():
            for name, number in rule.thresholds.items():
                changed = rule.but(**{name: number + 1}).thresholds
                assert changed == {**rule.thresholds, name: number + 1}

    @classmethod
    def _all(cls) -> list[Rule]:
        assert cls.rules, f"{cls.__name__}.rules names none"
        return [one if isinstance(one, Rule) else RULES[one] for one in cls.rules]

    @classmethod
    def _each(cls, series: Mapping[str, Sequence[Tables]]) -> Iterator[tuple[Rule, Tables]]:
        for rule in cls._all():
            assert series.get(rule.name), f"{cls.__name__} has no series for {rule.name}"
            for tables in series[rule.name]:
                yield rule, tables

    @classmethod
    def _every_series(cls) -> Iterator[tuple[Rule, Mapping[str, Floats]]]:
        for series in (cls.fires, cls.silent):
            for rule, tables in cls._each(series):
                yield rule, filled(tables)
        for rule in cls._all():
            yield rule, _unusual(rule, 300)


def _alerts_of(
    rule: Rule, tables: Mapping[str, Floats], size: int = 0, earlier: Sequence[Alert] = ()
) -> list[Alert]:
    """Return the alerts of a rule over rows that arrive ``size`` at a time, or all at once."""
    n_rows, n_modules = next(iter(tables.values())).shape
    rows = StreamInMemory(tables, tuple(f"layer{i}" for i in range(n_modules)), 0)
    found: list[Alert] = []
    failed: list[str] = []
    watcher = Watcher(
        rows.source,
        {rule.name: rule},
        found.append,
        failed=lambda step, text: failed.append(text),
        earlier=earlier,
    )
    while rows.n_rows < n_rows:
        rows.n_rows = min(rows.n_rows + (size or n_rows), n_rows)
        watcher.look()
    watcher.look(whole=True)
    assert not failed, failed[0]
    return found


def _unusual(rule: Rule, n_rows: int) -> dict[str, Floats]:
    """Ordinary numbers, among which are all others and gaps."""
    draw = np.random.default_rng(0)
    made = {}
    for name in rule.quantities:
        table = draw.normal(size=(n_rows, 3))
        where = draw.random(table.shape) < 0.4
        table[where] = draw.choice(UNUSUAL, where.sum())
        made.update(filled({name: table}))
        made[name][draw.random(table.shape) < 0.2] = NOT_MEASURED
    return made


def _check_sentence(alert: Alert) -> None:
    place, _, sentence = alert.text.partition(": ")
    assert place, f"{alert.rule} does not say where: {alert.text}"
    assert re.search(r"\d|NaN|inf", sentence), f"{alert.rule} says no number: {alert.text}"


def _words(alerts: Sequence[Alert]) -> list[tuple[object, ...]]:
    return [(alert.step, alert.modules, alert.text, alert.began) for alert in alerts]


def _shortened(tables: Tables) -> str:
    named = ((name, np.asarray(table).tolist()) for name, table in tables.items())
    return ", ".join(f"{name} = {values!r:.60}" for name, values in named)
