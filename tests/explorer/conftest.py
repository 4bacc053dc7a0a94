"""Panels of a test show what the test registers, and nothing that another has left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from notebook_probe.explorer.draw import heat as heat
from notebook_probe.explorer.draw.lines import lines as lines
from notebook_probe.explorer.draw.view import VIEWS
from tests.explorer.fakes import FakeControls
from tests.explorer.talk import Talk


@pytest.fixture(autouse=True)
def _only_the_plots_of_the_panel(monkeypatch: pytest.MonkeyPatch) -> None:
    plots = {name: VIEWS[name] for name in VIEWS if VIEWS[name].every_refresh}
    monkeypatch.setattr(VIEWS, "_members", plots)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where runs are recorded next to each other; it does not exist yet."""
    return tmp_path / "runs"


@pytest.fixture
def controls() -> FakeControls:
    return FakeControls()


@pytest.fixture
def talk(controls: FakeControls) -> Talk:
    talk = Talk(controls)
    talk.stream.append(range(10), grad_norm=1.0)
    return talk
