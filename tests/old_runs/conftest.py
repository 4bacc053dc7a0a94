"""What tests of old runs share."""

import pytest

from notebook_probe.old_runs import place


@pytest.fixture(autouse=True)
def files_are_old(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take no file for growing: those of the checkout may be seconds old."""
    monkeypatch.setattr(place, "RECENT_S", 0.0)


@pytest.fixture
def new_files_grow(files_are_old: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Take files for growing that were changed in the last minute."""
    monkeypatch.setattr(place, "RECENT_S", 60.0)
