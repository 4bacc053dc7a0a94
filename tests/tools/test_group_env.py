"""An environment is made once, and again only if something else is declared for it."""

from __future__ import annotations

import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from tools import group_env


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """Each group that has been installed, and whether in an empty environment."""
    made, cleared = list[tuple[str, bool]](), list[bool]()

    def create(folder: Path, clear: bool, **_: Any) -> None:
        folder.mkdir(exist_ok=True)
        cleared.append(clear)

    monkeypatch.setattr(venv, "create", create)
    monkeypatch.setattr(group_env, "install", lambda group: made.append((group, cleared[-1])))
    monkeypatch.setattr(group_env, "folder_of", lambda group: tmp_path / group)
    return made


def test_an_environment_is_made_once(made: list[tuple[str, bool]]) -> None:
    group_env.make("s3")
    group_env.make("s3")
    assert made == [("s3", True)]


def test_another_requirement_is_installed_into_the_environment(
    made: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    group_env.make("s3")
    monkeypatch.setitem(group_env.GROUPS, "s3", ["flask"])
    group_env.make("s3")
    assert made == [("s3", True), ("s3", False)]


def test_another_python_makes_the_environment_again(
    made: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    group_env.make("s3")
    monkeypatch.setattr(sys, "version", "3.99.0")
    group_env.make("s3")
    assert made == [("s3", True), ("s3", True)]


def test_an_interrupted_installation_starts_again(
    made: list[tuple[str, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(group: str) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as once:
        once.setattr(group_env, "install", interrupted)
        with pytest.raises(KeyboardInterrupt):
            group_env.make("s3")
    group_env.make("s3")
    assert made == [("s3", True)]
