"""A record of known values, and what `nbp` says of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from notebook_probe.command_line import main
from notebook_probe.home import HOME
from tests.command_line.reading.build import build

Asked = Callable[..., tuple[int, str, str]]
Answered = Callable[..., Any]


def strict_json(text: str) -> Any:
    """Parse JSON as other languages do: without NaN and infinity."""

    def refused(word: str) -> None:
        raise ValueError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refused)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("known")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(HOME, str(folder / "home"))
        return build(folder / "known.zarr")


@pytest.fixture
def ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Asked:
    """The exit code, stdout and stderr of a command."""
    monkeypatch.setenv(HOME, str(tmp_path / "home"))

    def asked(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        try:
            code = main(words)
        except SystemExit as ended:
            code = int(str(ended.code))
        found = capsys.readouterr()
        return code, found.out, found.err

    return asked


@pytest.fixture
def answer(ask: Asked) -> Answered:
    """The JSON of a command that succeeds."""

    def answered(*words: str) -> Any:
        code, out, err = ask(*words, "--json")
        assert (code, err) == (0, "")
        return strict_json(out)

    return answered
