"""One view of a panel, played."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from notebook_probe.explorer.conversation import PanelSession
from notebook_probe.explorer.messages.wire import TicketMessage
from notebook_probe.explorer.parse import parse
from notebook_probe.explorer.parts.all_parts import PARTS
from notebook_probe.run.controls import Controls
from tests.explorer.fakes import FakeSource, FakeStream
from tests.explorer.frames import gone_on


class Talk:
    """One view of a panel on a small run: says things, and keeps what it is told."""

    def __init__(
        self, controls: Controls | None, *quantities: str, of_run: Talk | None = None
    ) -> None:
        stream = FakeStream("every_1", ["a", "b", "c"], quantities or ["grad_norm"])
        self.stream: FakeStream = stream if of_run is None else of_run.stream
        self.source: FakeSource = FakeSource(stream) if of_run is None else of_run.source
        self.conversation = PanelSession(self.source, controls)
        self.heard: list[tuple[Mapping[str, Any], Sequence[memoryview | bytes]]] = []
        self.sent: list[tuple[Mapping[str, Any], list[memoryview]]] = []
        self._known: dict[str, tuple[Mapping[str, Any], Sequence[memoryview | bytes]]] = {}

    def says(self, message_type: str, /, **fields: Any) -> TicketMessage | None:
        """Returns what is answered at once."""
        message = parse({"v": 1, "type": message_type, **fields})
        assert message["type"] != "ping"
        return self.conversation.receive(message)

    def selects(self, **changes: Any) -> None:
        self.says("selection", **{**self.conversation.look().message(), **changes})

    def is_told(self) -> list[str]:
        """The types of the messages of one refresh; those of parts have tests of their own."""
        before = len(self.heard)
        head = self.conversation.head()
        self.conversation.publish(self._hears, "own subshell", head)
        types = [message["type"] for message, _ in self.heard[before:]]
        return [type for type in types if type not in {part.name for part in PARTS}]

    def _hears(self, message: Mapping[str, Any], buffers: list[memoryview]) -> None:
        """Keep it as the view has it then: with what is left out because it knows it."""
        self.sent.append((message, buffers))
        kind = message["type"]
        if kind == "status":
            known = self._known.get(kind, ({}, []))[0]
            self._known[kind] = {**known, **message}, []
        elif "base" in message:
            self._known[kind] = gone_on((message, buffers), self._known[kind])
        else:
            self._known[kind] = message, buffers
        self.heard.append(self._known[kind])

    def last(self, kind: str) -> Mapping[str, Any]:
        return [message for message, _ in self.heard if message["type"] == kind][-1]

    def acknowledges(self) -> None:
        for kind in ("lines", "heat"):
            if any(message["type"] == kind for message, _ in self.heard):
                self.says("ack", view="x", painted={kind: self.last(kind)["seq"]})
