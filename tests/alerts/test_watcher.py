"""Rules over records made by hand: what is said, where, when, and how often."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import notebook_probe as nbp
from notebook_probe.alerts import RULES, Alert, Rules, Watcher, find_alerts, median
from notebook_probe.alerts.following import start_row
from notebook_probe.alerts.rule import Severity
from notebook_probe.alerts.track import Onset
from notebook_probe.errors import RuleError
from notebook_probe.record import ModuleRow, RecordWriter
from tests.alerts.made import GAP, NAN, record, writer_at


@pytest.fixture
def nested_writer(tmp_path: Path) -> Iterator[RecordWriter]:
    with writer_at(tmp_path / "a.zarr", ("a", "b", "b.c")) as one:
        yield one


def told(alerts: Any) -> list[tuple[int, str, tuple[str, ...]]]:
    return [(alert.step, alert.rule, alert.modules) for alert in alerts]


def test_a_sentence_has_the_place_and_the_numbers_of_its_step(nested_writer: RecordWriter) -> None:
    dead = np.full((30, 2), 0.1)
    dead[5:] = [0.85, 0.9]
    record(nested_writer, {"dead_fraction": dead}, ["a", "b"], every=10)
    (alert,) = find_alerts(nested_writer.source, RULES["dead_units"])
    assert (alert.step, alert.module, alert.modules) == (90, "a", ("a", "b"))
    assert alert.text.startswith(
        "a and 1 more: 85% of the units were never above zero, since step 50"
    )
    assert (alert.quantities, alert.view) == (("dead_fraction",), "lines")
    assert (alert.flow, alert.began) == ("forward", (41, 50)), "the row at 40 had none"
    assert str(alert).startswith("step 90: dead_units began at a, seen in b: 85%")


def test_what_is_not_measured_neither_makes_nor_breaks_a_stretch(
    nested_writer: RecordWriter,
) -> None:
    share = np.array([[0.99], [GAP], [0.985], [GAP], [GAP], [0.981], [0.5]])
    record(nested_writer, {"silent_input_fraction": share}, ["a"])
    assert told(find_alerts(nested_writer.source, RULES["silent_inputs"])) == [
        (5, "silent_inputs", ("a",))
    ]


def test_a_measured_nan_breaks_a_stretch_and_is_what_the_nonfinite_rules_look_for(
    nested_writer: RecordWriter,
) -> None:
    record(nested_writer, {"silent_input_fraction": [[0.95], [NAN], [0.93], [0.91]]}, ["a"])
    record(nested_writer, {"loss": [[1.0], [GAP], [NAN], [1.0]]}, ["(root)"], every=2)
    assert told(find_alerts(nested_writer.source)) == [(4, "nonfinite_loss", ("(root)",))]


def test_of_outputs_that_are_not_finite_the_first_module_is_told_once(
    nested_writer: RecordWriter,
) -> None:
    bad = np.zeros((6, 3))
    bad[2, 1:] = 0.25
    bad[4, 0] = 1.0
    record(nested_writer, {"nonfinite_fraction": bad}, ["a", "b", "b.c"])
    (alert,) = find_alerts(nested_writer.source)
    assert (alert.step, alert.modules) == (2, ("b", "b.c"))
    assert alert.text.startswith("b and 1 more: 25.00% of the outputs are NaN or infinite")
    assert "number of modules before it with finite outputs: 1" in alert.text


def test_of_one_step_what_travels_is_named_in_the_order_in_which_it_does(tmp_path: Path) -> None:
    above = {"": -1, "b": 0, "b.1": 1, "b.2": 1, "up": 0}
    rows = [ModuleRow(name, "Net", 1, 1, parent) for name, parent in above.items()]
    with RecordWriter(tmp_path / "a.zarr", title="run", modules=rows, flush_s=3600.0) as writer:
        names = ["(root)", "up", "b.2", "b", "b.1"]  # as they were attached
        record(writer, {"nonfinite_fraction": [[0] * 5, [1, 0, 1, 1, 0]]}, names)
        norms = np.array([[1] * 5] * 12 + [[90, 90, 1, 90, 90]] * 2)
        record(writer, {"grad_norm": norms, "update_ratio": norms / 100}, names, every=2)
        forward, backward = find_alerts(writer.source)
    assert (forward.rule, forward.modules) == ("nonfinite_output", ("b.2", "b", "(root)"))
    assert "number of modules before it with finite outputs: 1" in forward.text, "that is b.1"
    assert backward.modules == ("up", "b.1", "b", "(root)")
    assert "began at up, seen in b.1 and 2 more: the gradient's norm is 90" in str(backward)


def test_a_module_at_which_it_has_held_for_longer_comes_first(nested_writer: RecordWriter) -> None:
    at = 0.99
    share = np.array([[0.5, 0.5], [0.5, at], [GAP, GAP], [at, at], [at, GAP], [at, at]])
    record(nested_writer, {"silent_input_fraction": share}, ["a", "b"])
    (alert,) = find_alerts(nested_writer.source, RULES["silent_inputs"])
    assert (alert.step, alert.modules, alert.began) == (5, ("b", "a"), (1, 1))


def test_series_on_several_schedules_are_compared_by_the_last_known_value(
    nested_writer: RecordWriter,
) -> None:
    record(nested_writer, {"update_ratio": np.full((60, 1), 0.3)}, ["a"])
    cosine = np.array([0.5, -0.25, GAP, -0.5, 0.5, 0.5])[:, None]
    record(nested_writer, {"grad_cosine": cosine}, ["(root)"], every=10)
    (alert,) = find_alerts(nested_writer.source, RULES["lr_high"].but(agree=0.0))
    # Of the last 20 rows six have 0.5 and fourteen -0.25: the first mean that is below 0.
    assert (alert.step, alert.module) == (23, "(root)")
    assert alert.text.startswith("the model: a step changes most layers by 30% of their size")
    assert "cosine -0.03" in alert.text
    assert "a learning rate 0.01 times as large" in alert.text


def test_a_value_of_the_nearest_module_above_stands_for_one_that_has_none(
    nested_writer: RecordWriter,
) -> None:
    @nbp.rule
    def beside(weight_norm, grad_norm):  # type: ignore[no-untyped-def]
        """{weight_norm:.0f} and {grad_norm:.0f}"""
        return np.isfinite(grad_norm)

    record(nested_writer, {"weight_norm": [[1, 2, 3, 4]]}, ["a", "b", "b.c", "b.c.weight[0]"])
    record(nested_writer, {"grad_norm": [[10, 20]]}, ["b", "(root)"], every=5)
    alerts = find_alerts(nested_writer.source, beside.but(rows=1))
    assert [alert.text for alert in alerts] == ["a and 3 more: 1 and 20"]
    seen: list[Any] = []

    @nbp.rule
    def spy(weight_norm, grad_norm):  # type: ignore[no-untyped-def]
        """never"""
        seen.append(grad_norm)
        return grad_norm < 0

    find_alerts(nested_writer.source, spy)
    assert seen[0].tolist() == [[20.0, 10.0, 10.0, 10.0]]


def test_a_module_that_is_recorded_without_the_quantity_has_it_from_above_until_it_has_its_own(
    nested_writer: RecordWriter,
) -> None:
    seen: list[Any] = []

    @nbp.rule
    def spy(weight_norm, loss):  # type: ignore[no-untyped-def]
        """never"""
        seen.append(loss)
        return loss < 0

    labels = ["a", "b", "b.c", "(root)"]
    losses = [[GAP, GAP, GAP, 7], [GAP, 5, GAP, 8], [GAP, NAN, 3, GAP]]
    record(nested_writer, {"weight_norm": [[1, 1, 1, GAP]] * 3, "loss": losses}, labels)
    find_alerts(nested_writer.source, spy)
    wanted = np.array([[7, 7, 7], [8, 5, 5], [8, np.nan, 3]])
    assert np.array_equal(seen[0], wanted, equal_nan=True)


def test_a_step_whose_other_rows_may_still_come_waits_for_them(nested_writer: RecordWriter) -> None:
    found: list[Alert] = []
    rule = RULES["lr_low"].but(rows=1)
    watcher = Watcher(nested_writer.source, {"lr_low": rule}, found.append)
    record(nested_writer, {"update_ratio": [[1e-9]], "weight_norm": [[1.0]]}, ["a"])
    watcher.look()
    assert found == []
    record(nested_writer, {"grad_norm": [[1.0]]}, ["a"], every=2)
    watcher.look(whole=True)
    assert told(found) == [(0, "lr_low", ("a",))]


def test_a_rule_over_the_model_gets_the_median_of_its_modules(nested_writer: RecordWriter) -> None:
    @nbp.rule
    def usual(weight_norm, most=2.5):  # type: ignore[no-untyped-def]
        """{weight_norm:g}"""
        return median(weight_norm, axis=1) > most

    record(nested_writer, {"weight_norm": [[1, 2, 9], [1, 3, 9]]}, ["a", "b", "b.c"])
    (alert,) = find_alerts(nested_writer.source, usual)
    assert (alert.step, alert.text) == (1, "the model: 3")


def test_modules_and_series_that_come_later_are_followed(nested_writer: RecordWriter) -> None:
    found: list[Alert] = []
    watcher = Watcher(nested_writer.source, Rules(), found.append)
    record(nested_writer, {"silent_input_fraction": [[0.5]] * 4}, ["a"])
    watcher.look()
    record(nested_writer, {"silent_input_fraction": [[0.5, 0.99]] * 4}, ["a", "b"], first=4)
    watcher.look()
    record(nested_writer, {"range_headroom_bits": [[1.0]]}, ["b.c"], first=8)
    watcher.look()
    assert told(found) == [(6, "silent_inputs", ("b",)), (8, "overflow_near", ("b.c",))]
    assert watcher.states()["overflow_near"] == "on"
    assert watcher.states()["loss_spike"] == "waits for loss"


def test_a_threshold_that_is_edited_counts_from_then_on_and_nothing_is_told_twice(
    nested_writer: RecordWriter,
) -> None:
    found: list[Alert] = []
    rules = Rules()
    watcher = Watcher(nested_writer.source, rules, found.append)
    table = [[0.95, 0.4]] * 4
    record(nested_writer, {"silent_input_fraction": table}, ["a", "b"])
    watcher.look()
    rules.edit("silent_inputs", most=0.3, later=0.3)
    record(nested_writer, {"silent_input_fraction": table}, ["a", "b"], first=4)
    watcher.look()
    assert told(found) == [(2, "silent_inputs", ("a",)), (4, "silent_inputs", ("b",))]
    del rules["silent_inputs"]
    record(nested_writer, {"silent_input_fraction": np.ones((4, 1))}, ["b.c"], first=8)
    watcher.look()
    assert len(found) == 2


def test_a_remark_may_become_an_alert_and_an_alert_no_remark(nested_writer: RecordWriter) -> None:
    found: list[Alert] = []
    rule = RULES["only_norms_train"]

    def ask(watcher: Watcher, *severities: Severity) -> list[str]:
        found.clear()
        for step, severity in enumerate(severities):
            finding = Onset(step, ("a",), "frozen", (0, 0), severity)
            watcher.ask(rule, partial(list, [finding]))
        return [one.severity for one in found]

    watcher = Watcher(nested_writer.source, Rules(), found.append)
    assert ask(watcher, "remark", "remark", "warning", "warning", "remark") == ["remark", "warning"]
    earlier = replace(found[0], severity="remark")
    later = Watcher(nested_writer.source, Rules(), found.append, earlier=[earlier])
    assert ask(later, "remark", "warning") == ["warning"], "in a run that is continued"


def test_a_rule_that_fails_is_told_of_and_put_off_until_it_is_changed(
    nested_writer: RecordWriter,
) -> None:
    def half(loss):  # type: ignore[no-untyped-def]
        """high"""
        return 1 / 0

    def other_shape(loss):  # type: ignore[no-untyped-def]
        """high"""
        return np.ones((7, 7))

    found: list[Alert] = []
    failed: list[str] = []
    rules = {"half": nbp.rule(half), "nonfinite_loss": RULES["nonfinite_loss"]}
    watcher = Watcher(
        nested_writer.source, rules, found.append, lambda step, text: failed.append(text)
    )
    for first in (0, 3):
        record(nested_writer, {"loss": [[1.0], [NAN], [1.0]]}, ["(root)"], first=first)
        watcher.look()
    assert failed == ["alert rule half is off: ZeroDivisionError: division by zero"]
    assert told(found) == [(1, "nonfinite_loss", ("(root)",))]
    assert watcher.states()["half"] == "off: ZeroDivisionError: division by zero"
    rules["half"] = nbp.rule(name="mended", says="low")(lambda loss: loss < 2)
    watcher.look()
    assert watcher.states()["half"] == "on"
    with pytest.raises(RuleError, match=r"returned \(7, 7\) for \(row, module\) = \(6, 1\)"):
        find_alerts(nested_writer.source, nbp.rule(other_shape))


def test_rows_that_are_written_out_of_order_say_nothing(nested_writer: RecordWriter) -> None:
    found: list[Alert] = []
    watcher = Watcher(nested_writer.source, Rules(), found.append)
    record(nested_writer, {"silent_input_fraction": [[0.5]] * 9}, ["a"])
    watcher.look()
    nested_writer.backfill("a", "silent_input_fraction", [2, 3, 4], [0.95, 0.95, 0.95])
    nested_writer.backfill("b", "nonfinite_fraction", [2], [1.0])
    watcher.look(whole=True)
    assert found == []


def test_a_long_record_is_looked_at_in_blocks(
    nested_writer: RecordWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    norms = np.ones((300, 3))
    norms[250:, 1] = 50.0
    record(nested_writer, {"grad_norm": norms, "update_ratio": norms / 100}, ["a", "b", "b.c"])
    rule = RULES["exploding_gradient"]
    whole = find_alerts(nested_writer.source, rule)
    monkeypatch.setattr("notebook_probe.alerts.following.CELLS", 21)
    assert find_alerts(nested_writer.source, rule) == whole
    assert told(whole) == [(251, "exploding_gradient", ("b",))]
    assert "50, 50 times its usual size" in whole[0].text


@pytest.mark.parametrize("n_rows", [0, 1, 7, 300])
def test_the_row_to_begin_with_is_found_from_the_end(
    nested_writer: RecordWriter, n_rows: int
) -> None:
    record(nested_writer, {"loss": np.zeros((n_rows, 1))}, ["(root)"], every=3, first=1)
    view = nested_writer.source.streams["every_3"]
    for step in (-1, 0, 1, 2, 4, 30, 450, 898, 899, 2000):
        steps = [1 + 3 * row for row in range(n_rows)]
        wanted = sum(1 for one in steps if one < step)
        for n_before in (1, 5):
            assert start_row(view, step, n_before) == max(0, wanted - n_before)
