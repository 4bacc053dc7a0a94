"""One cause with its consequences below it: trees of lists made by hand, and what holds for any."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.alerts import RULES, Alert, Alerts, Cause
from notebook_probe.alerts.causes import NEAR, causes, may_come_of
from notebook_probe.alerts.rule import FLOWS
from tests.alerts.made import LAW


def alert(rule: str, step: int, *modules: str, of: str = "", **fields: Any) -> Alert:
    """One as a record would tell it, of a rule with these causes."""
    return Alert(rule, step, "...", modules or ("(root)",), consequence_of=(*of.split(),), **fields)


def built_in(rule: str, step: int, *modules: str, **fields: Any) -> Alert:
    """One of a built-in rule."""
    known = RULES[rule]
    fields = {"flow": known.flow, "severity": known.severity, **fields}
    return alert(rule, step, *modules, of=" ".join(known.consequence_of), **fields)


def tree(found: Sequence[Cause]) -> list[Any]:
    """Rules and steps, those below in a list after them."""
    out: list[Any] = []
    for one in found:
        out.append(
            " ".join([one.alert.rule, *(str(part.step) for part in (one.alert, *one.later))])
        )
        out += [tree(one.consequences)] if one.consequences else []
    return out


def test_a_rate_that_is_too_high_has_all_that_came_of_it_below_it() -> None:
    alerts = [
        built_in("lr_high", 121),
        built_in("exploding_gradient", 102, "head", "a"),
        built_in("diverging_loss", 104),
        built_in("exploding_gradient", 130, "b"),
        built_in("dead_units", 330, "a", began=(121, 130)),
        built_in("nonfinite_loss", 150),
        built_in("loader_bound", 140),
    ]
    assert tree(causes(alerts)) == [
        "lr_high 121",
        [
            "exploding_gradient 102 130",
            ["diverging_loss 104", "nonfinite_loss 150"],
            "dead_units 330",
        ],
        "loader_bound 140",
    ]


def test_modules_that_follow_soon_belong_to_the_finding_and_are_no_line_of_their_own() -> None:
    steps = [(100, "b"), (100 + NEAR, "a"), (100 + 2 * NEAR, "c"), (101 + 3 * NEAR, "d")]
    alerts = Alerts(alert("dead", step, name, flow="forward") for step, name in steps)
    first, second = alerts.causes
    assert (first.alert.module, first.modules) == ("b", ("b", "a", "c"))
    assert first.where == "began at b, seen in a and 1 more"
    assert second.where == "at d"
    assert repr(alerts).splitlines() == [
        "step 100: dead began at b, seen in a and 1 more: ...",
        "step 293: dead at d: ...",
    ]
    assert len(alerts) == 4


def test_a_module_that_is_named_again_is_named_once() -> None:
    (one,) = causes([alert("spike", 10, "a"), alert("spike", 40, "a", "b")])
    assert (one.modules, one.where) == (("a", "b"), "at a and 1 more")


@pytest.mark.parametrize(
    ("step", "is_below"), [(99, True), (100 + NEAR, True), (101 + NEAR, False)]
)
def test_a_consequence_begins_before_the_window_is_over(step: int, is_below: bool) -> None:
    high = alert("high", 100, began=(90, 100))
    late = alert("late", step, of="high")
    assert (len(causes([high, late])) == 1) is is_below
    assert may_come_of(late, high) is is_below


def test_what_was_measured_seldom_may_have_begun_before_what_was_found_sooner() -> None:
    nan_loss = alert("nan_loss", 345, of="nan_output")
    for began, is_below in [((301, 400), True), ((346, 400), False)]:
        nan_output = alert("nan_output", 400, "b", flow="forward", began=began)
        assert (
            tree(causes([nan_loss, nan_output])) == ["nan_output 400", ["nan_loss 345"]]
        ) is is_below


@pytest.mark.parametrize("flow", [None, *FLOWS])
@pytest.mark.parametrize(
    ("found", "is_below"), [(401 + NEAR, True), (402 + NEAR, False), (670, False)]
)
def test_what_is_known_only_long_after_is_not_put_above_what_is_certain(
    flow: Any, found: int, is_below: bool
) -> None:
    spike = alert("spike", 401, of="seldom")
    seldom = alert("seldom", found, flow=flow, began=(351, found))
    expected = [f"seldom {found}", ["spike 401"]] if is_below else ["spike 401", f"seldom {found}"]
    assert tree(causes([spike, seldom])) == expected
    assert may_come_of(spike, seldom) is is_below


def test_what_is_known_only_long_after_may_come_of_what_is_certain() -> None:
    spike = alert("spike", 401, of="seldom")
    seldom = alert("seldom", 670, of="spike", began=(351, 670))
    assert tree(causes([spike, seldom])) == ["spike 401", ["seldom 670"]]


def test_a_rule_about_the_training_on_average_may_be_late_and_one_that_travels_not() -> None:
    effect = alert("effect", 100, of="cause")
    for flow, late, is_below in [
        (None, NEAR, True),
        (None, NEAR + 1, False),
        ("forward", 1, False),
    ]:
        cause = alert("cause", 100 + late, flow=flow)
        assert (len(causes([effect, cause])) == 1) is is_below


def test_of_several_the_nearest_before_it_is_the_cause_and_at_one_step_the_first_named() -> None:
    last = alert("last", 100, of="direct far late")
    assert tree(causes([alert("far", 10), alert("direct", 90), last])) == [
        "far 10",
        "direct 90",
        ["last 100"],
    ]
    assert tree(causes([alert("far", 90), alert("direct", 90), last])) == [
        "direct 90",
        ["last 100"],
        "far 90",
    ]
    assert tree(causes([alert("far", 40), alert("late", 101), last])) == [
        "far 40",
        ["last 100"],
        "late 101",
    ]


def test_rules_that_may_cause_each_other_are_told_apart_by_which_came_first() -> None:
    for output, gradient, first in [(7, 7, "nonfinite_output"), (8, 7, "nonfinite_gradient")]:
        alerts = [
            built_in("nonfinite_gradient", gradient, "a"),
            built_in("nonfinite_loss", output),
            built_in("nonfinite_output", output, "b"),
        ]
        (cause,) = causes(alerts)
        assert cause.alert.rule == first
        assert [one.alert.step for one in cause.below] == sorted([output, 7, output])[1:]


def test_a_circle_of_causes_has_a_first() -> None:
    circle = [alert("a", 5, of="c"), alert("b", 5, of="a"), alert("c", 5, of="b")]
    (cause,) = causes(circle)
    assert Counter(cause) == Counter(circle)


def test_the_text_and_the_table_indent_what_came_of_a_cause() -> None:
    alerts = Alerts(
        [
            built_in("lr_high", 100),
            built_in("exploding_gradient", 110, "b", "a<b"),
            built_in("loss_spike", 111),
        ]
    )
    assert repr(alerts).splitlines() == [
        "step 100: lr_high at the model: ...",
        "  step 110: exploding_gradient began at b, seen in a<b: ...",
        "    step 111: loss_spike at the model: ...",
    ]
    html = alerts._repr_html_()
    assert "&emsp;exploding_gradient" in html
    assert "&emsp;&emsp;loss_spike" in html
    assert "began at b, seen in a&lt;b" in html


# -------------------------------------------------------------------------- laws

RULE_NAMES = "abcde"
ALERTS = st.lists(
    st.builds(
        lambda rule, step, of, flow, span, modules: alert(
            rule, step, *modules, of=" ".join({*of} - {rule}), flow=flow, began=(step - span, step)
        ),
        st.sampled_from(RULE_NAMES),
        st.integers(0, 900),
        st.lists(st.sampled_from(RULE_NAMES), max_size=3),
        st.sampled_from([None, *FLOWS]),
        st.integers(0, 120),
        st.lists(st.sampled_from("xyz"), min_size=1, max_size=2, unique=True),
    ),
    max_size=12,
)


@LAW
@given(ALERTS)
def test_every_alert_is_in_the_forest_once(alerts: list[Alert]) -> None:
    assert Counter(one for cause in causes(alerts) for one in cause) == Counter(alerts)


@LAW
@given(ALERTS, st.randoms(use_true_random=False))
def test_the_order_in_which_alerts_come_does_not_matter(alerts: list[Alert], random: Any) -> None:
    other = [*alerts]
    random.shuffle(other)
    assert causes(other) == causes(alerts)


@LAW
@given(ALERTS)
def test_nothing_but_what_came_of_it_could_have_caused_a_root(alerts: list[Alert]) -> None:
    found = causes(alerts)
    for root in found:
        for other in found:
            for part in (
                one for node in (other, *other.below) for one in (node.alert, *node.later)
            ):
                if part.rule in root.alert.consequence_of and may_come_of(root.alert, part):
                    assert other is root


@LAW
@given(ALERTS)
def test_what_is_below_may_have_come_of_what_is_above(alerts: list[Alert]) -> None:
    for root in causes(alerts):
        for node in (root, *root.below):
            for one in node.consequences:
                assert any(may_come_of(one.alert, part) for part in (node.alert, *node.later))
