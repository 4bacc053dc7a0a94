"""Between a view's message and the queue of the run nothing is computed and nobody waited for."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from torch import nn

import notebook_probe as nbp
from notebook_probe.explorer import Explorer, Panel
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.run.health.status import ProbeStatus
from tests.models import floats, sgd, train_step

PACKAGE = str(Path(nbp.__file__).parent)
MOST_CALLS = 20

batch = floats(4, 3)


class Calls:
    """Counts the Python calls of functions in our files until a request is queued."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._queued = False

    def __enter__(self) -> Calls:
        sys.setprofile(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _called(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "c_call" and code.co_qualname == "Gate.put":
            self._queued |= getattr(argument, "__name__", "") == "put"
        if event == "call" and not self._queued and code.co_filename.startswith(PACKAGE):
            self.names.append(code.co_qualname)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[nbp.Run]:
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 2))
    with nbp.watch(model, store=tmp_path / "run.zarr", probes=None) as run:
        run.attach("*", "output_mean")
        optimizer = sgd(model)
        for step in range(3):
            train_step(model, optimizer, batch(step))
        yield run


@pytest.fixture
def live_panel(run: nbp.Run) -> Panel:
    return Panel(run, run.controls)


@pytest.fixture
def explorer(live_panel: Panel) -> Iterator[Explorer]:
    explorer = Explorer(live_panel, "run")
    yield explorer
    explorer.close()


CLICKS: dict[str, dict[str, Any]] = {
    "control": {"action": "pause"},
    "attach": {"where": [str(k) for k in range(2400)], "quantity": "norm", "schedule": "every(5)"},
    "detach": {"where": [str(k) for k in range(2400)], "quantity": ""},
    "compiled": {"steps": "eager"},
}


@pytest.mark.parametrize("kind", CLICKS)
def test_a_click_is_queued_within_a_few_calls_however_much_is_marked(
    kind: str, run: nbp.Run, live_panel: Panel, explorer: Explorer
) -> None:
    def tells() -> list[Any]:
        sent: list[Any] = []
        live_panel._session.publish(
            lambda message, _: sent.append(message), "", run.controls.status_head()
        )
        return sent

    explorer._handle_custom_msg({"v": 1, "type": "hello", "view": "x"}, [])
    tells()
    with Calls() as calls:
        explorer._handle_custom_msg({"v": 1, "type": kind, "id": "1", **CLICKS[kind]}, [])
    assert "Gate.put" in calls.names
    assert len(calls.names) < MOST_CALLS, " ".join(calls.names)
    [ticket] = next(message for message in tells() if message["type"] == "status")["tickets"]
    assert (ticket["id"], ticket["state"]) == ("1", "queued")


def test_a_click_does_not_wait_for_a_status_that_is_being_made(
    run: nbp.Run, live_panel: Panel, explorer: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    looking, clicked = threading.Event(), threading.Event()
    probes = run.controls.probes

    def slow() -> Any:
        looking.set()
        assert clicked.wait(60)
        return probes()

    monkeypatch.setattr(run.controls, "probes", slow)
    explorer._handle_custom_msg({"v": 1, "type": "hello", "view": "x"}, [])
    sent: list[Any] = []
    refresh = threading.Thread(
        target=live_panel._session.publish,
        args=(lambda message, _: sent.append(message), "", run.controls.status_head()),
    )
    refresh.start()
    assert looking.wait(60)
    explorer._handle_custom_msg({"v": 1, "type": "control", "id": "1", "action": "pause"}, [])
    explorer._handle_custom_msg({"v": 1, "type": "visible", "view": "x", "visible": True}, [])
    assert not run._parts.gate._waiting.empty()
    clicked.set()
    refresh.join(60)
    assert "status" in [message["type"] for message in sent]


def test_probes_are_not_looked_at_while_nobody_sees_the_panel(
    run: nbp.Run, live_panel: Panel, explorer: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []

    def counted() -> list[ProbeStatus]:
        looks.append(1)
        return []

    monkeypatch.setattr(run.controls, "probes", counted)

    def tells() -> None:
        live_panel._session.publish(lambda *_: None, "", run.controls.status_head())

    tells()
    assert looks == []
    explorer._handle_custom_msg({"v": 1, "type": "hello", "view": "x"}, [])
    tells()
    tells()
    assert looks == [1]
    explorer._handle_custom_msg({"v": 1, "type": "visible", "view": "x", "visible": False}, [])
    run.attach("0", "weight_norm")
    tells()
    assert looks == [1]


def test_a_click_is_answered_in_its_own_thread_and_what_is_queued_wakes_nobody(
    live_panel: Panel, explorer: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []
    woken: list[str] = []
    monkeypatch.setattr(live_panel, "_widget", explorer)
    monkeypatch.setattr(explorer, "send", lambda message, _: sent.append(message))
    monkeypatch.setattr(live_panel, "_wake", lambda is_used=True: woken.append("woken"))
    explorer._handle_custom_msg({"v": 1, "type": "control", "id": "1", "action": "pause"}, [])
    [answer] = sent
    assert (answer["type"], answer["id"], answer["state"]) == ("ticket", "1", "queued")
    assert woken == []  # the run does, at the step at which it pauses
    explorer._handle_custom_msg(
        {"v": 1, "type": "attach", "id": "2", "where": [], "quantity": "norm", "schedule": " "}, []
    )
    assert sent[1]["state"] == "refused"
    assert woken == ["woken"]


def test_steps_that_a_hand_moves_wait_for_the_next_refresh_and_where_it_rests_does_not(
    live_panel: Panel, explorer: Explorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    woken: list[str] = []
    monkeypatch.setattr(live_panel, "_widget", explorer)
    monkeypatch.setattr(live_panel, "_wake", lambda is_used=True: woken.append("woken"))
    explorer._handle_custom_msg({"v": 1, "type": "moved", "window": [1.0, 4.0]}, [])
    assert woken == []
    selection = PanelSelection(window=(1.0, 4.0)).message()
    explorer._handle_custom_msg(dict(selection), [])
    assert woken == ["woken"]
