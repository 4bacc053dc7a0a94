"""How a panel hears its clicks in marimo, whose page puts each of them into two queues."""

from __future__ import annotations

import queue
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from notebook_probe.explorer.notebooks.marimo import MarimoNotebook, ReadAhead, marimo_kernel


class Command(SimpleNamespace):
    """What marimo's page says to a widget, or to anything else."""

    def into_comm_payload(self) -> dict[str, Any]:
        return {"content": {"data": self.message.__dict__}}


class Message(SimpleNamespace):
    def __init__(self, content: object, method: str = "custom") -> None:
        super().__init__(content=content, method=method)


class Comm:
    """A comm that notes what reaches it."""

    def __init__(self, comm_id: str) -> None:
        self.comm_id = comm_id
        self.heard: list[object] = []

    def handle_msg(self, message: dict[str, Any]) -> None:
        self.heard.append(message["content"]["data"]["content"])


class Kernel:
    """As much of marimo's kernel as is relied on: the way into its two queues."""

    def __init__(self) -> None:
        self.control: queue.Queue[Any] = queue.Queue()
        set_ui_element_queue: queue.Queue[Any] = queue.Queue()
        self.ahead, control = set_ui_element_queue, self.control

        def enqueue(command: object) -> None:
            control.put_nowait(command)
            set_ui_element_queue.put_nowait(command)

        self.enqueue_control_request = enqueue

    def says(self, comm: Comm, *contents: object, method: str = "custom") -> None:
        for content in contents:
            message = Message(content, method)
            self.enqueue_control_request(Command(model_id=comm.comm_id, message=message))

    def ends_cell(self, *comms: Comm) -> list[Any]:
        """Handle what waits, each once; what it was."""
        handled, by_id = [], {comm.comm_id: comm for comm in comms}
        while not self.ahead.empty():
            handled.append(command := self.ahead.get_nowait())
            if command.model_id in by_id:
                by_id[command.model_id].handle_msg(command.into_comm_payload())
        return handled


@pytest.fixture(autouse=True)
def _commands(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = SimpleNamespace(ModelCommand=Command, ModelCustomMessage=Message)
    monkeypatch.setitem(sys.modules, "marimo._runtime.commands", commands)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Lets the time go by after which the pump works again."""
    now = SimpleNamespace(s=100.0)
    monkeypatch.setattr("time.monotonic", lambda: now.s)

    def later() -> None:
        now.s += 1.0

    return later


def test_a_click_is_answered_once_be_it_ahead_or_in_its_turn(clock: Callable[[], None]) -> None:
    kernel, ours, other = Kernel(), Comm("ours"), Comm("other")
    way = ReadAhead(kernel, lambda: True)
    way.carry(ours)  # type: ignore[arg-type]
    kernel.says(ours, 1)
    kernel.says(other, "a")
    kernel.says(ours, 2)
    way.pump()
    assert (ours.heard, other.heard) == ([1, 2], [])
    clock()
    kernel.says(other, "b")
    kernel.says(ours, 3)
    way.pump()
    kernel.says(ours, 4)  # too late for the pump
    handled = kernel.ends_cell(ours, other)
    assert [command.message.content for command in handled] == [1, "a", 2, "b", 3, 4]
    assert (ours.heard, other.heard) == ([1, 2, 3, 4], ["a", "b"])
    kernel.says(ours, 5)
    kernel.ends_cell(ours, other)
    assert ours.heard == [1, 2, 3, 4, 5]


def test_the_pump_leaves_what_widgets_synchronize_to_marimo(clock: Callable[[], None]) -> None:
    kernel, ours = Kernel(), Comm("ours")
    way = ReadAhead(kernel, lambda: True)
    way.carry(ours)  # type: ignore[arg-type]
    kernel.says(ours, {"home": "x"}, method="update")
    kernel.says(ours, 1)
    way.pump()
    assert ours.heard == [1]
    kernel.ends_cell(ours)
    assert ours.heard == [1, {"home": "x"}]


def test_outside_a_cell_nothing_is_read_ahead() -> None:
    kernel, ours = Kernel(), Comm("ours")
    way = ReadAhead(kernel, lambda: False)
    way.carry(ours)  # type: ignore[arg-type]
    kernel.says(ours, 1)
    way.pump()
    assert ours.heard == []
    assert kernel.ahead.qsize() == 1


def test_what_is_told_to_oneself_arrives_as_from_the_page() -> None:
    kernel, ours = Kernel(), Comm("ours")
    way = ReadAhead(kernel, lambda: True)
    way.carry(ours)  # type: ignore[arg-type]
    way.tell_myself("ours", {"type": "ping"})
    way.pump()
    assert ours.heard == [{"type": "ping"}]
    kernel.ends_cell(ours)
    assert ours.heard == [{"type": "ping"}]


def test_a_marimo_that_is_built_otherwise_answers_after_the_cell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    contexts = SimpleNamespace(safe_get_context=lambda: None)
    monkeypatch.setitem(sys.modules, "marimo._runtime.context.types", contexts)
    assert marimo_kernel() is None
    for kernel in (SimpleNamespace(), SimpleNamespace(enqueue_control_request=print)):
        assert MarimoNotebook(kernel).way.name == "after the cell"
