"""Files out of a panel that compares hold the other runs, too, on the axis that is chosen."""

from __future__ import annotations

import csv
import io
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import notebook_probe as nbp
from notebook_probe import figures
from notebook_probe.compare.line_axes import line_axis
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.save.export import export
from notebook_probe.explorer.save.exports import FileExports
from notebook_probe.explorer.save.others import Others
from notebook_probe.figures import compared
from tests.compare.made import made
from tests.explorer.others.records import train

LOSS = ("(root)", "loss")
RATIO = ("0", "update_ratio")


@pytest.fixture(scope="module")
def three_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    train(folder / "own.zarr", (4.0, 3.0, 2.0), config={"batch_size": 4})
    train(folder / "a.zarr", (4.0, 2.0), seed=1, config={"batch_size": 8})
    train(folder / "b.zarr", (5.0, 1.0, 0.5), seed=2)
    return folder


def chosen(folder: Path, *names: str, **fields: Any) -> PanelSelection:
    others = tuple(str(folder / f"{name}.zarr") for name in names)
    selection = PanelSelection(home="update_ratio", others=others, **fields)
    return selection.with_series(LOSS)


def exported(kind: str, folder: Path, selection: PanelSelection) -> tuple[Any, bytes]:
    own = nbp.open_run(folder / "own.zarr")
    message, buffers = export(kind, own, selection)  # type: ignore[arg-type]
    assert "error" not in message, message
    return message, b"".join(buffers)


def rows_of(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode())))


def losses(rows: list[dict[str, str]], column: str = "value") -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in rows:
        if row["quantity"] == "loss":
            found.setdefault(row["run"], []).append(row[column])
    return found


def test_the_table_has_what_is_drawn_of_each_run(three_runs: Path) -> None:
    message, content = exported("csv", three_runs, chosen(three_runs, "a", "b"))
    rows = rows_of(content)
    assert list(rows[0]) == ["run", "module", "quantity", "step", "time", "value"]
    assert losses(rows) == {
        "own": ["4.0", "3.0", "2.0"],
        "a": ["4.0", "2.0"],
        "b": ["5.0", "1.0", "0.5"],
    }
    assert {row["run"] for row in rows if row["quantity"] == "update_ratio"} == {"own"}
    assert "note" not in message


@pytest.mark.parametrize(("grouped", "divided_by"), [(False, {"b"}), (True, {"a", "b"})])
def test_beside_a_ratio_it_has_the_values_of_both(
    three_runs: Path, grouped: bool, divided_by: set[str]
) -> None:
    ratio_to = str(three_runs / "b.zarr")
    selection = chosen(three_runs, "a", "b", ratio_to=ratio_to, grouped=grouped)
    rows = rows_of(exported("csv", three_runs, selection)[1])
    [first, *_] = [row for row in rows if row["quantity"] == "update_ratio" and row["run"] == "b"]
    other = nbp.open_run(ratio_to).series(first["module"], "update_ratio")
    assert np.float32(first["value"]) == other.values[0]
    held = {row["run"] for row in rows if row["quantity"] == "update_ratio"}
    assert held == {"own"} | divided_by


def test_a_column_named_after_the_axis_says_where_a_row_stands(three_runs: Path) -> None:
    rows = rows_of(exported("csv", three_runs, chosen(three_runs, "a", aligned="samples"))[1])
    assert losses(rows, "by_samples") == {"own": ["0.0", "4.0", "8.0"], "a": ["0.0", "8.0"]}
    rows = rows_of(exported("csv", three_runs, chosen(three_runs, "a", "b", aligned="loss"))[1])
    found = losses(rows, "by_loss")
    assert found["a"] == ["0.0", "2.0"], "the step of this run at which its loss was as small"
    assert found["b"] == ["0.0", "", ""], "this run was never as good"


def test_its_window_is_one_of_this_runs_steps(three_runs: Path) -> None:
    selection = chosen(three_runs, "a", aligned="samples", window=(1.0, 2.0))
    assert losses(rows_of(exported("csv", three_runs, selection)[1]), "step") == {
        "own": ["1", "2"],
        "a": ["1"],
    }


def test_a_run_that_cannot_be_read_or_aligned_is_left_out_by_name(three_runs: Path) -> None:
    selection = chosen(three_runs, "a", "b", "gone", aligned="samples")
    message, content = exported("csv", three_runs, selection)
    assert set(losses(rows_of(content))) == {"own", "a"}
    assert message["note"].startswith("own.csv, without b (samples are not recorded in b;")
    assert "without gone (" in message["note"]


def test_the_picture_has_the_lines_of_the_others_at_this_runs_steps(three_runs: Path) -> None:
    selection = chosen(three_runs, "a", "b", aligned="samples", smooth=0.0)
    others = Others(nbp.open_run(three_runs / "own.zarr"), selection)
    [line] = others.lines(selection)
    assert (line.name, line.colour, line.dash) == ("a", 0, 0)
    assert (line.x.tolist(), line.y.tolist()) == ([0.0, 2.0], [4.0, 2.0])
    assert line.label == "a 2"


def test_a_group_is_one_line_with_a_band(three_runs: Path) -> None:
    selection = chosen(three_runs, "a", "b", grouped=True, smooth=0.0, log_y=False)
    [line] = Others(nbp.open_run(three_runs / "own.zarr"), selection).lines(selection)
    assert line.name == "mean of 2 runs"
    assert line.y[0] == 4.5
    assert line.band is not None
    assert [edge[0] for edge in line.band] == [4.0, 5.0]


def test_other_runs_are_at_the_epochs_of_this_run(three_runs: Path) -> None:
    own = made("own", logged={"loss": [4.0, 3.0, 2.0, 1.0]}, epochs={0: 0, 2: 1})
    selection = chosen(three_runs, "a", smooth=0.0, x_axis="epoch")
    [line] = Others(own, selection).lines(selection)
    assert np.asarray(line.x).tolist() == [0.0, 0.5]


@pytest.mark.parametrize("x_axis", ["step", "time", "epoch"])
@pytest.mark.parametrize("aligned", ["step", "samples", "loss"])
def test_the_code_draws_the_lines_where_the_panel_does(
    three_runs: Path, monkeypatch: pytest.MonkeyPatch, x_axis: Any, aligned: str
) -> None:
    drawn: list[Figure] = []
    monkeypatch.setattr(figures, "compared", lambda *a, **b: drawn.append(compared(*a, **b)))
    window = (1.0, 2.0) if aligned == "samples" else None
    options = {"x_axis": x_axis, "aligned": aligned, "window": window, "log_y": False}
    selection = chosen(three_runs, "a", smooth=0.0, **options)
    text = exported("code", three_runs, replace(selection, home=""))[0]["text"]
    exec(text.replace(").savefig('lines.png')", ")"), {})
    own = nbp.open_run(three_runs / "own.zarr")
    axis = line_axis(own, "step" if x_axis == "epoch" else x_axis)  # it has no epochs
    whole = replace(selection, x_axis=axis.name, window=None)
    [line] = Others(own, whole).lines(whole)
    shown = line.x >= axis.at([1.0 if window else 0.0])
    [axes] = drawn[0].axes
    mine, other = [one for one in axes.lines if one.get_linewidth() == 1.6]
    np.testing.assert_allclose(
        np.asarray(other.get_xydata(), float), np.transpose([line.x, line.y])[shown]
    )
    np.testing.assert_allclose(
        np.asarray(mine.get_xdata(), float), axis.at(np.arange(1 if window else 0, 3))
    )


@pytest.mark.slow
@pytest.mark.parametrize("x_axis", ["step", "time", "epoch"])
@pytest.mark.parametrize("grouped", [False, True])
def test_each_run_is_named_in_the_picture(three_runs: Path, x_axis: Any, grouped: bool) -> None:
    selection = chosen(three_runs, "a", "b", x_axis=x_axis, grouped=grouped)
    alone = exported("svg", three_runs, chosen(three_runs, x_axis=x_axis))[1]
    message, beside = exported("svg", three_runs, selection)
    assert "note" not in message
    names = [b"<!-- mean of 2 runs"] if grouped else [b"<!-- a 2 ", b"<!-- b 0.5 "]
    assert all(name in beside and name not in alone for name in names)


def test_what_a_file_lacks_of_the_others_is_said(three_runs: Path) -> None:
    message, _ = exported("netcdf", three_runs, chosen(three_runs, "a"))
    assert message["note"] == "own.nc, of this run alone,"
    gone = chosen(three_runs, "gone", ratio_to=str(three_runs / "gone.zarr"))
    message, _ = exported("png", three_runs, gone)
    assert message["note"].endswith("its heat map of this run alone,")
    assert message["note"].count("without gone") == 1


@pytest.mark.slow
def test_the_heat_map_of_the_picture_is_the_ratio_that_the_panel_shows(three_runs: Path) -> None:
    divided = chosen(three_runs, "a", "b", ratio_to=str(three_runs / "b.zarr"), apart=(1.01, 1))
    message, content = exported("svg", three_runs, divided)
    assert "note" not in message
    assert "update_ratio ÷ b" in content.decode()
    assert b'id="flag"' in content
    grouped = exported("svg", three_runs, replace(divided, grouped=True))[1]
    assert "÷ the mean of 2 runs" in grouped.decode()
    one = Others(nbp.open_run(three_runs / "own.zarr"), divided).apart(
        replace(divided, rows=("0",))
    )
    assert one is not None
    assert one.ratio.modules == ("0",)


def test_a_file_of_several_runs_is_made_in_a_thread_of_its_own(three_runs: Path) -> None:
    exports = FileExports(nbp.open_run(three_runs / "own.zarr"))
    exports.make("csv", chosen(three_runs))
    [(message, _)] = exports.made()
    assert message["filename"] == "own.csv"
    exports.make("csv", chosen(three_runs, "a"))
    exports._worker.do((made := threading.Event()).set)
    assert made.wait(60)
    [(_, [content])] = exports.made()
    assert set(losses(rows_of(bytes(content)))) == {"own", "a"}
    exports.close()
