"""Every test of experiments has a home of its own."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where experiments and the catalogue lie."""
    monkeypatch.setenv("NOTEBOOK_PROBE_HOME", str(tmp_path / "home"))
    return tmp_path / "home"
