"""Runs that other processes may act on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from notebook_probe.run.attach.requests import Request
from notebook_probe.run.remote_control import mail_server, places
from notebook_probe.run.remote_control.asking import Asked, ask_run
from tests.run.loops import PATIENCE_S

Ask = Callable[[object, Request], Asked]


@pytest.fixture
def only_mailbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """No socket, as on another machine, and a mailbox that is read often."""
    monkeypatch.setattr(places, "_folders", list)
    monkeypatch.setattr(mail_server, "READ_S", 0.01)


@pytest.fixture
def ask() -> Ask:
    """Ask the run of a record as another process does."""

    def asked(location: object, request: Request) -> Asked:
        return ask_run(location, request, "a test", PATIENCE_S)  # type: ignore[arg-type]

    return asked
