"""The panel opened with other runs beside, from code."""

from __future__ import annotations

from pathlib import Path

import pytest

import notebook_probe as nbp
from notebook_probe.errors import RecordWarning
from tests.explorer.others.records import train


def selected(run: nbp.OpenedRun) -> tuple[tuple[str, ...], str]:
    assert run._panel is not None
    selection = run._panel._session.look()
    return selection.others, selection.ratio_to


def test_a_run_is_explored_beside_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    here, there = (train(tmp_path / f"{name}.zarr") for name in "ab")
    run = nbp.open_run(here)
    run.explore(others=[there])
    assert selected(run) == ((str(there),), str(there))
    run.explore()
    assert selected(run) == ((str(there),), str(there)), "as it was left"
    assert "no notebook here" in capsys.readouterr().out


def test_of_more_than_four_it_is_said_who_is_shown(tmp_path: Path) -> None:
    run = nbp.open_run(train(tmp_path / "a.zarr"))
    others = [f"runs/{i}.zarr" for i in range(6)]
    with pytest.warns(
        RecordWarning, match=r"4 of 6 other runs are shown: runs/0\.zarr, .*3\.zarr$"
    ):
        run.explore(others=others)
    assert selected(run)[0] == tuple(others[:4])
