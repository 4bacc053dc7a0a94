"""Alerts as events: what is kept comes back, and what others wrote does no harm."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.alerts import Alert, Alerts, read_alerts
from notebook_probe.alerts.alert import alert_of, rule_off
from notebook_probe.alerts.listing import read_remarks
from notebook_probe.alerts.rule import FLOWS
from notebook_probe.record import Event
from notebook_probe.record.views.branches.line import events_of_line
from tests.alerts.made import LAW

FIELDS = ["rule", "modules", "quantities", "view", "flow", "consequence_of", "began"]
NAMES = st.text(min_size=1, max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
)


@LAW
@given(
    NAMES,
    st.integers(0, 2**40),
    st.text(),
    st.lists(NAMES).map(tuple),
    NAMES,
    st.sampled_from([None, *FLOWS]),
    st.integers(0, 99),
)
def test_an_alert_comes_back_from_its_event(
    rule: str, step: int, text: str, modules: tuple[str, ...], view: str, flow: Any, span: int
) -> None:
    alert = Alert(
        rule, step, text, modules, (rule,), view, 17, "severe", flow, modules, (step - span, step)
    )
    assert alert_of(Event(step, 17, "alert", text, alert.detail)) == alert


@LAW
@given(
    st.one_of(
        st.text(),
        JSON.map(json.dumps),
        st.dictionaries(st.sampled_from(FIELDS), JSON).map(json.dumps),
    )
)
def test_of_a_detail_that_makes_no_sense_the_sentence_is_left(detail: str) -> None:
    alert = alert_of(Event(3, 0, "alert", "what was said", detail))
    assert (alert.step, alert.text) == (3, "what was said")
    assert isinstance(alert.rule, str)
    texts = (*alert.modules, *alert.quantities, *alert.consequence_of, alert.view)
    assert all(isinstance(one, str) for one in texts)
    assert alert.module
    assert str(alert).endswith("what was said")
    assert Alerts([alert]).causes[0].alert == alert


def test_a_record_from_before_rules_had_causes_takes_them_from_the_rules_of_today() -> None:
    event = Event(9, 0, "alert", "fc: dead", '{"rule": "dead_units", "modules": ["fc", "a"]}')
    alert = alert_of(event)
    assert "lr_high" in alert.consequence_of
    assert (alert.flow, alert.began) == (None, None)
    assert str(alert).startswith("step 9: dead_units at fc and 1 more: "), "they are in no order"


def test_the_list_is_in_the_order_of_steps_and_filters_by_rule() -> None:
    alerts = Alerts([Alert("b", 9, "later"), Alert("a", 2, "soon"), Alert("b", 1, "first")])
    assert [alert.text for alert in alerts] == ["first", "soon", "later"]
    assert [alert.step for alert in alerts.of("b")] == [1, 9]
    assert alerts[1:] == Alerts([alerts[1], alerts[2]])
    assert alerts[-1].text == "later"
    assert alerts != []
    assert hash(alerts[:0]) == hash(Alerts())
    assert (repr(Alerts()), Alerts()._repr_html_()) == ("no alerts", "<p>no alerts</p>")
    shown = Alerts([Alert("a<b", 2, "x & y")])._repr_html_()
    assert "a&lt;b" in shown
    assert "x &amp; y" in shown
    assert shown.count("text-align: left") == 8, "heads stand above their columns, in any theme"


def test_a_rule_that_is_off_is_named_below_the_alerts() -> None:
    events = [
        event("error", 3, rule_off("odd", "KeyError: <3>")),
        event("error", 4, "another error"),
        event("alert", 5, "fc: dead"),
    ]
    alerts = read_alerts(events)
    assert alerts.off == alerts.of("odd").off == {"odd": "KeyError: <3>"}
    assert repr(alerts).splitlines()[-1] == "rule odd is off: KeyError: <3>"
    assert alerts._repr_html_().endswith("<p>rule odd is off: KeyError: &lt;3&gt;</p>")
    assert alerts.of("other").off == {}


@pytest.mark.parametrize("detail", ['{"rule": "odd", "from": {}, "to": {}}', "[", '{"rule": 3}'])
def test_an_edited_rule_is_on_again(detail: str) -> None:
    edit = Event(4, 0, "rule", "odd: most 1 → 2", detail)
    off = read_alerts([event("error", 3, rule_off("odd", "KeyError: 3")), edit]).off
    assert [*off] == ([] if "odd" in detail else ["odd"])


def test_remarks_that_are_chosen_stay_remarks() -> None:
    found = [
        Alert(rule, step, "as told", (f"fc{step}",), severity="remark")
        for step, rule in enumerate("aba")
    ]
    remarks = read_remarks(Event(one.step, 0, "remark", one.text, one.detail) for one in found)
    for chosen in (remarks.of("a"), remarks[::2], remarks.until(2).of("a")):
        assert [one.step for one in chosen] == [0, 2]
        assert repr(chosen) == "step 0: a at fc0 and 1 more: as told", "found within a short while"
    assert repr(remarks[:0]) == repr(remarks.of("c")) == "no remarks"
    assert remarks[:0]._repr_html_() == "<p>no remarks</p>"


def test_a_table_has_the_place_in_a_column_of_its_own() -> None:
    shown = Alerts([Alert("dead", 2, "0 and 1 more: 60% dead", ("0", "2"))])._repr_html_()
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", shown)
    assert cells == ["2", "dead", "0 and 1 more", "60% dead"]


def test_names_are_escaped_in_a_notebook() -> None:
    html = Alerts([Alert("<script>", 1, "<b>&")])._repr_html_()
    assert "&lt;script&gt;" in html
    assert "&lt;b&gt;&amp;" in html
    assert "<script>" not in html


def event(kind: str, step: int, text: str = "") -> Event:
    return Event(step, 0, kind, text)


EVENTS = [
    event("alert", 10, "a"), event("alert", 90, "taken back"), event("truncate", 50),
    event("alert", 60, "b"), event("branch", 55), event("alert", 70, "c"),
]  # fmt: skip


@pytest.mark.parametrize(("branch", "texts"), [(None, "a c"), (2, "a c"), (1, "a b")])
def test_alerts_of_steps_that_were_taken_back_do_not_count(branch: int | None, texts: str) -> None:
    line = events_of_line(EVENTS, branch)
    assert " ".join(alert.text for alert in read_alerts(line)) == texts


@pytest.mark.parametrize("name", ["\x1b[31mred", "a\u202eb", "a\0b", "a\nb"])
def test_names_of_a_record_cannot_steer_the_terminal(name: str) -> None:
    found = Alert("dead_units", 150, f"{name}: 60 % dead", (name,))
    text = repr(Alerts([found, Alert("lr_high", 100, "large steps", ("(root)",))]))
    assert len(text.splitlines()) == 2
    assert text.replace("\n", "").isprintable()
    assert str(found).isprintable()
