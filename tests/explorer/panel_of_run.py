"""A panel of a run, whose parts a test talks to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import notebook_probe as nbp
from notebook_probe.explorer.conversation import PanelSession
from notebook_probe.explorer.parse import parse

__all__ = ["PanelOfRun"]


class PanelOfRun:
    """A panel of a run, and everything that it has sent to its views.

    Parameters
    ----------
    run : Run
    part : str
        Type of the messages that `state` returns the last of.
    """

    def __init__(self, run: nbp.Run, part: str) -> None:
        self.session, self._run, self._part = PanelSession(run, run.controls), run, part
        self.sent: list[Mapping[str, Any]] = []
        self.hear(type="hello", view="x")

    def hear(self, **message: Any) -> None:
        self.session.receive(parse({"v": 1, **message}))  # type: ignore[arg-type]

    def state(self) -> Mapping[str, Any]:
        head = self._run.controls.status_head()
        self.session.publish(lambda message, _: self.sent.append(message), "pump", head)
        return [message for message in self.sent if message["type"] == self._part][-1]
