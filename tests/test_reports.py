"""Sentences for the user go through logging, and without a handler to the standard output."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path

import pytest

import notebook_probe as nbp
from notebook_probe.reports import LOGGER, report
from tests.models import mlp


@pytest.fixture(autouse=True)
def fresh_logger(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process in which nothing was reported yet; the logger is one of the whole process."""
    before = [*LOGGER.handlers], LOGGER.level, LOGGER.propagate
    monkeypatch.setattr(LOGGER, "handlers", [])
    LOGGER.setLevel(logging.NOTSET)
    LOGGER.propagate = True
    yield
    _, level, LOGGER.propagate = before
    LOGGER.setLevel(level)


def test_a_run_reports_its_place_on_the_standard_output_of_that_moment(tmp_path: Path) -> None:
    model, said = mlp(), io.StringIO()
    report("before the redirection")
    with redirect_stdout(said):
        nbp.watch(model, store=tmp_path / "run.zarr").close()
    assert said.getvalue() == f"recording to {tmp_path / 'run.zarr'}\n"


def test_the_level_of_the_logger_silences_it(capsys: pytest.CaptureFixture[str]) -> None:
    logging.getLogger("notebook_probe").setLevel(logging.WARNING)
    report("recording")
    assert capsys.readouterr() == ("", "")


def test_a_handler_of_the_user_takes_the_place_of_ours(capsys: pytest.CaptureFixture[str]) -> None:
    file = io.StringIO()
    logging.getLogger("notebook_probe").addHandler(logging.StreamHandler(file))
    report("recording")
    assert file.getvalue() == "recording\n"
    assert capsys.readouterr() == ("", "")
