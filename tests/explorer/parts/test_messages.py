"""An address that is typed into the panel gets messages, and is nowhere to be read afterwards."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import notebook_probe as nbp
from notebook_probe.explorer.conversation import PanelSession
from notebook_probe.explorer.parts.messages import MessagesPart
from notebook_probe.run.notify import notifier as threads
from tests.explorer.fakes import FakeControls, FakeSource
from tests.explorer.panel_of_run import PanelOfRun
from tests.models import made, mlp
from tests.run.conftest import Watch, watch
from tests.run.notify.test_notify import FakeApprise, apprise

__all__ = ["apprise", "watch"]

SECRET = "T0K3N-of-mine"
ADDRESS = f"slack://{SECRET}/channel"


class Panel(PanelOfRun):
    """A panel of a run, and the state of its messages."""

    def __init__(self, run: nbp.Run) -> None:
        super().__init__(run, "messages")

    def once(self, holds: Callable[[Mapping[str, Any]], bool]) -> Mapping[str, Any]:
        """The state, once something is true of it."""
        for _ in range(2000):
            if holds(self.state()):
                return self.state()
            time.sleep(0.005)
        raise AssertionError(self.state())


@pytest.fixture
def panel(watch: Watch, apprise: FakeApprise) -> Panel:
    return Panel(watch(made(mlp), probes=None, name="first"))


def answered(id: str) -> Callable[[Mapping[str, Any]], bool]:
    return lambda state: state["answered"] == id


def test_an_address_gets_the_alerts_of_the_run(panel: Panel, apprise: FakeApprise) -> None:
    assert panel.state()["live"] is True
    panel.hear(type="notify", id="1", address=f" {ADDRESS} ", on=["severe", "end"])
    state = panel.once(answered("1"))
    assert state["problem"] == ""
    [row] = state["rows"]
    assert (row["kind"], row["on"], row["n_sent"]) == ("slack", ["severe", "end"], 0)
    run = panel._run
    for loss in (1.0, float("nan")):
        run.log(loss=loss)
        run.step()
    run.close()
    assert next(title for title, _ in apprise.sent).startswith("first: nonfinite_loss at step 1")


def test_messages_are_ended_in_their_row(panel: Panel) -> None:
    panel.hear(type="notify", id="1", address=ADDRESS, on=["end"])
    [row] = panel.once(answered("1"))["rows"]
    panel.hear(type="notify_end", which=row["id"])
    panel.once(lambda state: state["rows"] == [])
    panel.hear(type="notify_end", which=7)  # of another panel


@pytest.mark.parametrize(
    ("address", "on", "problem"),
    [
        (f"nothing://{SECRET}", ["end"], "address 1 of 1, nothing://..., is none of"),
        ("", ["end"], "an address is expected, such as slack://..."),
        ("slack://" + SECRET * 999, ["end"], "an address is expected"),
        (ADDRESS, ["sometimes"], "on has 'sometimes'"),
    ],
    ids=["unknown", "empty", "long", "occasion"],
)
def test_what_cannot_be_used_is_refused_without_its_address(
    panel: Panel, address: str, on: list[str], problem: str
) -> None:
    panel.hear(type="notify", id="1", address=address, on=on)
    state = panel.once(answered("1"))
    assert problem in state["problem"]
    assert state["rows"] == []
    assert SECRET not in repr(panel.sent)


def test_an_error_of_a_library_is_shown_without_its_text(
    panel: Panel, apprise: FakeApprise, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(f"no way to {ADDRESS}")

    monkeypatch.setattr(threads.Notifier, "__init__", fail)
    panel.hear(type="notify", id="1", address=ADDRESS, on=["end"])
    assert panel.once(answered("1"))["problem"] == "messages cannot be sent: OSError"


@pytest.mark.slow
def test_the_address_is_nowhere_to_be_read(panel: Panel, tmp_path: Path) -> None:
    run = panel._run
    panel.hear(type="notify", id="1", address=ADDRESS, on=["end"])
    panel.once(answered("1"))
    run.log(loss=1.0)
    run.step()
    run.to_html(tmp_path / "run.html")
    run.close()
    texts = [repr(panel.sent), repr(run), repr(run.status()), repr(run.events)]
    files = [path for path in Path(run.location).rglob("*") if path.is_file()]
    texts += [path.read_bytes().decode("latin-1") for path in (*files, tmp_path / "run.html")]
    assert not [text for text in texts if SECRET in text]
    gc.collect()
    holders = [one for one in gc.get_objects() if type(one) is dict and one.get("id") == "1"]
    assert not [one for one in holders if one.get("address") == ADDRESS]


def test_a_record_and_a_training_elsewhere_offer_no_messages() -> None:
    for controls in (None, FakeControls()):
        session = PanelSession(FakeSource(), controls)
        part = MessagesPart(FakeSource(), controls)
        seen = type("Seen", (), {"head": session.head()})()
        assert part.state(seen)["live"] is False
        part._begin({"v": 1, "type": "notify", "id": "1", "address": ADDRESS, "on": ["end"]})
        assert part.state(seen)["problem"].startswith("messages are sent by the process that")
