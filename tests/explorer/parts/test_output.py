"""The output of a training reaches the panel when a view shows it, and is kept at a click."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import notebook_probe as nbp
from notebook_probe.explorer.parse import parse
from notebook_probe.explorer.parts.output import OutputPart
from notebook_probe.explorer.parts.part import Seen
from tests.explorer.panel_of_run import PanelOfRun
from tests.models import made, mlp
from tests.run.conftest import Watch, watch

__all__ = ["watch"]


@pytest.fixture
def run(watch: Watch) -> Iterator[nbp.Run]:
    model = made(mlp)
    yield watch(model, probes=None, name="first")
    del model


def test_nothing_is_kept_until_a_view_asks_and_nothing_sent_until_one_shows_it(
    run: nbp.Run,
) -> None:
    panel = PanelOfRun(run, "output")
    print("before")
    assert panel.state() == {
        "v": 1, "type": "output", "live": True, "kept": False, "problem": "", "lines": []
    }  # fmt: skip
    panel.hear(type="keep_output")
    assert (panel.state()["kept"], panel.state()["lines"]) == (True, [])
    print("<b>after</b>")
    panel.hear(type="show_output", on=True)
    assert panel.state()["lines"] == [[0, "<b>after</b>"]]
    n_sent = len(panel.sent)
    panel.state()
    assert len([one for one in panel.sent[n_sent:] if one["type"] == "output"]) == 0
    panel.hear(type="show_output", on=False)
    assert panel.state()["lines"] == []


def test_a_click_that_is_no_message_is_refused() -> None:
    with pytest.raises(Exception, match="on"):
        parse({"v": 1, "type": "show_output", "on": "yes"})


def test_an_opened_record_shows_what_was_kept(run: nbp.Run) -> None:
    nbp.keep_output(run)
    print("one")
    print("two")
    run.close()
    opened = nbp.open_run(Path(run.location))
    part = OutputPart(opened, None)
    part.hear({"v": 1, "type": "show_output", "on": True})
    head = run.controls.status_head()
    state = part.state(Seen(head, None))  # type: ignore[arg-type]
    assert state == {
        "live": False, "kept": True, "problem": "", "lines": [[0, "one"], [0, "two"]]
    }  # fmt: skip
