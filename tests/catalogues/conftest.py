"""A home of its own for every test, so that it finds no runs but its own."""

from pathlib import Path

import pytest

from notebook_probe.home import HOME


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv(HOME, str(folder))
    return folder
