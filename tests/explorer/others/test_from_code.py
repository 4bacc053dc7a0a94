"""The panel opened with other runs beside, from code."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import notebook_probe as nbp
from notebook_probe.errors import RecordWarning
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.save.code import code
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


@pytest.fixture
def explored(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], bool]]:
    """What runs were asked to be explored beside, and whether as a group."""
    asked: list[tuple[list[str], bool]] = []

    def explore(run: nbp.OpenedRun, others: list[str], grouped: bool) -> None:
        asked.append(([Path(one).stem for one in others], grouped))

    monkeypatch.setattr(nbp.OpenedRun, "explore", explore)
    return asked


@pytest.mark.parametrize(
    ("configs", "grouped"),
    [
        ([{"lr": 1.0}, {"lr": 0.1, "seed": 1}, {"lr": 0.1, "seed": 2}], True),
        ([{"lr": 0.1, "seed": 0}, {"lr": 0.1, "seed": 1}, {"lr": 0.2, "seed": 1}], False),
        ([{"lr": 0.1, "seed": 0}, {"lr": 0.1, "seed": 1}], False),
        ([None, None, None], False),
    ],
)
def test_seeds_of_one_setting_open_as_a_group_and_other_runs_as_lines(
    tmp_path: Path,
    explored: list[tuple[list[str], bool]],
    configs: list[dict[str, float] | None],
    grouped: bool,
) -> None:
    for k, config in enumerate(configs):
        train(tmp_path / f"{k}.zarr", config=config)
    nbp.open_runs(str(tmp_path / "*.zarr")).explore()
    assert explored == [([str(k) for k in range(1, len(configs))], grouped)]


def test_who_is_gone_since_runs_were_opened_keeps_nobody_from_exploring(
    tmp_path: Path, explored: list[tuple[list[str], bool]]
) -> None:
    for k in range(3):
        train(tmp_path / f"{k}.zarr", config={"seed": k})
    study = nbp.open_runs(str(tmp_path / "*.zarr"))
    shutil.rmtree(tmp_path / "2.zarr")
    study.explore()
    assert explored == [(["1", "2"], False)]


def test_others_are_a_group_until_they_are_separated(tmp_path: Path) -> None:
    here, *others = (train(tmp_path / f"{name}.zarr") for name in "abc")
    run = nbp.open_run(here)
    run.explore(others=others, grouped=True)
    assert run._panel is not None
    assert run._panel._session.look().grouped
    run.explore(others=others)
    assert not run._panel._session.look().grouped


def test_every_choice_of_the_comparison_is_a_trait(tmp_path: Path) -> None:
    here, there = (str(train(tmp_path / f"{name}.zarr")) for name in "ab")
    run = nbp.open_run(here)
    explorer = run.explorer
    explorer.others = (there, there)
    explorer.ratio_to, explorer.aligned = there, "time"
    explorer.grouped, explorer.apart = True, (3.0, 5)
    assert run._panel is not None
    selection = run._panel._session.look()
    assert (selection.others, selection.ratio_to, selection.aligned) == ((there,), there, "time")
    assert (selection.grouped, selection.apart) == (True, (3.0, 5))
    explorer.others = ()
    assert run._panel._session.look().ratio_to == ""
    explorer.close()


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("others", tuple(f"{i}.zarr" for i in range(5)), "at most 4 runs"),
        ("ratio_to", "runs/a.zarr", "no run 'runs/a.zarr' in the folder of this one"),
        ("aligned", "luck", "allowed: step, time, samples, epochs, loss"),
        ("apart", (1.0, 10), "a factor above 1"),
        ("apart", (2.0, 0), "rows from 1"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    tmp_path: Path, name: str, value: object, says: str
) -> None:
    explorer = nbp.open_run(train(tmp_path / "a.zarr")).explorer
    before = getattr(explorer, name)
    with pytest.raises((ValueError, LookupError), match=says):
        setattr(explorer, name, value)
    assert getattr(explorer, name) == before
    explorer.close()


@pytest.mark.slow
@pytest.mark.parametrize("grouped", [False, True])
def test_the_code_of_a_comparison_draws_it(tmp_path: Path, grouped: bool) -> None:
    here, there, third = (str(train(tmp_path / f"{name}.zarr")) for name in "abc")
    selection = PanelSelection(
        home="update_ratio",
        others=(there, third),
        ratio_to=third,
        aligned="time",
        grouped=grouped,
        window=(0.0, 2.0),
        log_y=True,
    ).with_series(("(root)", "loss"), ("0", "grad_norm"))
    text = code(here, selection)
    more = ", grouped=True" if grouped else ""
    assert f"# record.explore(others={[there, third]!r}{more})" in text
    subprocess.run([sys.executable, "-W", "error", "-c", text], check=True, cwd=tmp_path)
    assert {path.name for path in tmp_path.glob("*.png")} == {"ratio.png", "lines.png"}
