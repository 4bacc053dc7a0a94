"""The ratio of two runs and where they part, as a panel is told of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import notebook_probe as nbp
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.others.divergence import RunDivergence
from notebook_probe.explorer.others.overlay import RunOverlay
from notebook_probe.explorer.others.shelf import Shelf
from tests.explorer.others.records import train

STEPS = (1.0,) * 8
SELECTION = PanelSelection(home="update_ratio", apart=(2.0, 3))


def frames(folder: Path, *others: str, **changes: Any) -> dict[str, tuple[Any, Any]]:
    """What a panel of `own` is told of how far the others are, by the type of message."""
    source = nbp.open_run(folder / "own.zarr")
    shelf = Shelf(source, run=lambda task: task())
    beside = RunOverlay(source, shelf)
    runs = tuple(str(folder / f"{name}.zarr") for name in others)
    chosen = replace(SELECTION, others=runs, **changes)
    shelf.keep(runs)
    beside.offer(chosen)
    return {str(message["type"]): (message, buffers) for message, buffers in beside.frames()}


def cells(frame: tuple[Any, Any]) -> npt.NDArray[np.float32]:
    """Decades (module, column); NaN where the state says that something was not measured."""
    message, [numbers, states, _] = frame
    shape = len(message["rows"]), message["columns"]
    far = (np.frombuffer(numbers, "<u2").astype("<u4") << 16).view("<f4").reshape(shape).copy()
    far[np.frombuffer(states, np.uint8).reshape(shape) == 1] = np.nan
    return far


def test_cells_are_decades_of_the_ratio_and_nothing_where_a_run_has_ended(tmp_path: Path) -> None:
    train(tmp_path / "own.zarr", STEPS, lr=0.3)
    train(tmp_path / "a.zarr", STEPS[:5], lr=0.02)
    message, _ = frame = frames(tmp_path, "a")["ratio"]
    runs = [nbp.open_run(tmp_path / f"{name}.zarr") for name in ("own", "a")]
    assert message["rows"] == ["0", "2"]
    assert (message["first_step"], message["limit"], message["signed"]) == (0, 1.0, False)
    for row, module in enumerate(message["rows"]):
        mine, other = (run.series(module, "update_ratio").values for run in runs)
        expected = np.log10(mine[:5].astype(float) / other)
        np.testing.assert_allclose(cells(frame)[row, :5], expected, rtol=4e-3, atol=1e-3)
        assert np.isnan(cells(frame)[row, 5:]).all()


def test_a_rate_that_is_three_times_as_high_parts_from_the_first_step_on(tmp_path: Path) -> None:
    train(tmp_path / "own.zarr", STEPS, lr=3e-3)
    train(tmp_path / "a.zarr", STEPS, lr=1e-3)
    told, _ = frames(tmp_path, "a")["parting"]
    assert sorted((one["module"], one["step"]) for one in told["found"]) == [("0", 0), ("2", 0)]
    assert {one["there"] for one in told["found"]} == {"×3.0"}
    assert told["text"] == "Differs from a at step 0: 0 · update_ratio ×3.0"
    together, _ = frames(tmp_path, "a", apart=(4.0, 3))["parting"]
    assert (together["found"], together["within"]) == ([], ["0", "2"])
    assert together["text"] == "They stay within ×4 at all 2 modules"


def test_of_a_group_the_mean_of_the_logarithms_is_divided_by(tmp_path: Path) -> None:
    train(tmp_path / "own.zarr", STEPS[:1], lr=4e-3)
    train(tmp_path / "a.zarr", STEPS[:1], lr=1e-3)
    train(tmp_path / "b.zarr", STEPS[:1], lr=4e-3)
    far = cells(frames(tmp_path, "a", "b", grouped=True)["ratio"])
    np.testing.assert_allclose(far, np.log10(2), atol=2e-3)
    to_b = str(tmp_path / "b.zarr")
    message, _ = frame = frames(tmp_path, "a", "b", ratio_to=to_b)["ratio"]
    assert message["to"] == to_b
    np.testing.assert_allclose(cells(frame), 0.0, atol=2e-3)


def test_a_quantity_that_the_other_lacks_is_nowhere_measured(tmp_path: Path) -> None:
    train(tmp_path / "own.zarr", STEPS)
    train(tmp_path / "a.zarr", STEPS, quantities=["grad_norm"])
    sent = frames(tmp_path, "a")
    assert np.isnan(cells(sent["ratio"])).all()
    assert sent["parting"][0]["text"] == "update_ratio is not recorded in both at any module"


def test_rows_of_the_heat_map_are_those_of_the_ratio_and_without_one_there_is_none(
    tmp_path: Path,
) -> None:
    train(tmp_path / "own.zarr", STEPS)
    train(tmp_path / "a.zarr", STEPS)
    message, _ = frames(tmp_path, "a", rows=("2",))["ratio"]
    assert message["rows"] == ["2"]
    assert frames(tmp_path, "a", home="").keys() == {"beside"}


def test_a_frame_follows_a_run_that_grows(tmp_path: Path) -> None:
    train(tmp_path / "own.zarr", STEPS)
    train(tmp_path / "a.zarr", STEPS[:2])
    runs = [nbp.open_run(tmp_path / f"{name}.zarr") for name in ("own", "a")]
    apart = RunDivergence(runs[0], runs[1:], "a", SELECTION)
    before = cells(apart.frames(SELECTION)[0])
    with runs[1]._writing() as writer:
        writer.backfill("0", "update_ratio", [2, 3], [1.0, 1.0])
    _ = runs[1].revision
    after = cells(apart.frames(SELECTION)[0])
    assert np.isfinite(before[0]).sum() == pytest.approx(2)
    assert np.isfinite(after[0]).sum() == pytest.approx(4)


@pytest.mark.slow
def test_a_damaged_run_of_a_group_is_told_and_the_others_are_compared_with(tmp_path: Path) -> None:
    for name, lr in {"own": 4e-3, "a": 1e-3, "b": 2e-3, "c": 1e-3}.items():
        train(tmp_path / f"{name}.zarr", STEPS, lr=lr)
    for chunk in (tmp_path / "b.zarr/scalars/every_1/update_ratio").rglob("c/*/*"):
        chunk.write_bytes(b"\0" * chunk.stat().st_size)
    shelf = Shelf(nbp.open_run(tmp_path / "own.zarr"), run=lambda task: task())
    beside = RunOverlay(nbp.open_run(tmp_path / "own.zarr"), shelf)
    runs = tuple(str(tmp_path / f"{name}.zarr") for name in "abc")
    shelf.keep(runs)
    beside.offer(replace(SELECTION, others=runs, grouped=True))
    found = {str(frame[0]["type"]): frame for frame in beside.frames()}
    np.testing.assert_allclose(cells(found["ratio"])[:, 0], np.log10(4), atol=2e-3)
    assert str(found["parting"][0]["text"]).startswith("Differs from 2 runs at step 0")
    assert list(beside.problems) == [runs[1]]
    assert beside.problems[runs[1]].startswith("b is left out: cannot read")
    beside.offer(replace(SELECTION, others=runs, ratio_to=runs[1]))
    assert list(beside.problems) == [runs[1]]
    assert "cannot read" in beside.problems[runs[1]]
