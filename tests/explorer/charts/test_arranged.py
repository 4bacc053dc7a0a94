"""Arranged charts: what the kernel draws in each, and what a saved view keeps of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import notebook_probe as nbp
from notebook_probe.errors import ProbeError
from notebook_probe.explorer import one_file
from notebook_probe.explorer.charts import ChosenChart, chart_message, chosen_charts
from notebook_probe.explorer.draw.lines.lines import Lines
from notebook_probe.explorer.handed_on.package import Looked
from notebook_probe.explorer.messages.looked_at import check
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.explorer.messages.value_scale import line_charts
from notebook_probe.explorer.parse import MessageError, parse
from notebook_probe.explorer.save.export import export
from notebook_probe.explorer.saved_views import ViewFile, ViewSettings
from notebook_probe.record.format.ranges import charts_of
from notebook_probe.record.format.schema import LOGGED_BY
from notebook_probe.record.format.source import Variable
from notebook_probe.record.formulas import FormulaError
from notebook_probe.record.views.thinning.average import Average
from tests.explorer.fakes import FakeSource, FakeStream
from tests.explorer.saved_views.test_saved_views import recorded

ROOT = "(root)"
LOSS, ACCURACY, DRIFT = (ROOT, "loss"), (ROOT, "accuracy"), (ROOT, "drift")
STEPS = np.arange(60)
FALLING = np.exp(-STEPS / 20).astype(np.float32)


@pytest.fixture
def logged() -> FakeSource:
    stream = FakeStream("logged", [ROOT], ["loss", "accuracy", "drift"], logged=True)
    stream.append(STEPS, loss=FALLING[:, None], accuracy=1 - FALLING[:, None], drift=-1.0)
    return FakeSource(stream, modules=(ROOT,))


def arranged(*charts: ChosenChart, **changes: Any) -> PanelSelection:
    series = [one for chart in charts for one in chart.series]
    return replace(PanelSelection().with_series(*series), charts=charts, **changes)


def test_a_series_that_is_in_no_chart_joins_one_with_values_of_its_kind() -> None:
    stream = FakeStream("s", ["a"], ["loss"])
    stream.variables = (
        Variable("loss", long_name=LOGGED_BY),
        Variable("norm"),
        Variable("accuracy", long_name=LOGGED_BY),
        Variable("wait", "s"),
    )
    chosen: list[list[tuple[str, str]]] = [[], [("a", "accuracy")], [("a", "loss")]]
    series = [("a", name) for name in ("loss", "accuracy", "norm", "wait")]
    found = charts_of([stream], series, chosen)
    assert [*found.values()] == [2, 1, 2, 3]
    assert charts_of([stream], series[:1], [[], []]) == {("a", "loss"): 2}


def test_each_chart_is_drawn_with_its_own_scale_and_smoothing(logged: FakeSource) -> None:
    selection = arranged(
        ChosenChart((ACCURACY,), log_y=True, smooth=0.0),
        ChosenChart((LOSS,), log_y=False, smooth=0.5),
        smooth=0.9,
    ).with_series(DRIFT)
    message, [buffer] = Lines().frame(logged, selection, 400)
    rows = {one["quantity"]: one for one in message["series"]}
    assert {name: one["chart"] for name, one in rows.items()} == {
        "accuracy": 0,
        "loss": 1,
        "drift": 1,
    }
    assert (rows["accuracy"]["log_y"], rows["loss"]["log_y"]) == (True, False)
    assert [one["weight"] for one in rows.values()] == [0.0, 0.5, 0.5]
    numbers = np.frombuffer(buffer, "<f4")
    loss = rows["loss"]
    at = loss["offset"] + 2 * loss["n"] + loss["n_average"]
    expected = Average(0.5).follow(FALLING[:, None])[:, 0]
    np.testing.assert_allclose(numbers[at : at + loss["n_average"]], expected, rtol=1e-5)


def test_the_files_have_the_arranged_charts_in_their_order(logged: FakeSource) -> None:
    lower = ChosenChart((LOSS,), log_y=False, y_limits=(0.1, 2.0))
    found = line_charts(logged, arranged(ChosenChart((ACCURACY,), smooth=0.5), lower))
    assert [one.series for one in found] == [(ACCURACY,), (LOSS,)]
    assert [one.log_y for one in found] == [False, False]
    assert found[1].chosen == lower


def test_a_request_is_brought_into_its_limits() -> None:
    told: Any = [
        {**chart_message(ChosenChart((LOSS, LOSS, ACCURACY))), "smooth": 2.0, "height": 7},
        {**chart_message(ChosenChart((ACCURACY, DRIFT))), "y_limits": (3.0, 1.0), "height": 9999},
    ]
    first, second = chosen_charts(told, [LOSS, ACCURACY])
    assert (first.series, first.smooth, first.height) == ((LOSS, ACCURACY), 0.999, 80)
    assert (second.series, second.y_limits, second.height) == ((), None, 1200)


def test_a_chart_of_a_message_is_read_as_it_is_declared() -> None:
    chosen = {**PanelSelection().message(), "charts": [chart_message(ChosenChart((LOSS,)))]}
    assert parse(chosen)["charts"][0]["series"] == [LOSS]  # type: ignore[typeddict-item]
    chart: Any = {**chart_message(ChosenChart()), "log_y": "yes"}
    with pytest.raises(MessageError, match=r"'log_y' of selection\.charts"):
        parse({**PanelSelection().message(), "charts": [chart]})


def test_a_saved_view_keeps_the_charts_and_applies_them_to_another_model(tmp_path: Path) -> None:
    charts = (
        ChosenChart((("blocks.*", "grad_norm"),), log_y=False, smooth=0.5, height=300),
        ChosenChart((("head", "weight_norm"),), y_limits=(0.25, 4.0)),
    )
    file = ViewFile(tmp_path, "first.zarr")
    file.save("two", ViewSettings(home="grad_norm", charts=charts))
    assert file.view("two").charts == charts
    run = recorded(tmp_path / "run.zarr", 3)
    shown = file.view("two").applied(PanelSelection(), run)
    blocks = tuple((f"blocks.{k}", "grad_norm") for k in range(3))
    assert shown.charts[0] == replace(charts[0], series=blocks)
    assert shown.charts[1] == charts[1]
    assert shown.series == (*blocks, ("head", "weight_norm"))
    saved = json.loads(file.path.read_text())["views"]["two"]["charts"][1]
    assert saved["y_limits"] == [0.25, 4.0]


def test_a_chart_of_a_file_needs_its_series_alone(tmp_path: Path) -> None:
    view = ViewSettings.from_json({"charts": [{"series": [["head", "weight_norm"]]}]})
    assert view.charts == (ChosenChart((("head", "weight_norm"),)),)
    with pytest.raises(ProbeError, match="a chart has no setting 'hight'; allowed: height, log_y"):
        ViewSettings.from_json({"charts": [{"hight": 3}]})


def test_a_file_of_a_run_shows_the_charts_of_a_view(tmp_path: Path) -> None:
    run: nbp.OpenedRun = recorded(tmp_path / "run.zarr")
    charts = (ChosenChart((("head", "weight_norm"),), height=300), ChosenChart())
    ViewFile.of(run).save("tall", ViewSettings(charts=charts))
    looked = one_file.looking_at(Looked(PanelSelection(), []), run, "tall")
    assert looked.selection.charts == charts
    assert looked.selection.message()["charts"][0]["height"] == 300


def test_a_formula_is_drawn_exported_and_told_of(logged: FakeSource) -> None:
    error, wrong = (ROOT, "= 1 - accuracy"), (ROOT, "= 1 - acc")
    selection = replace(PanelSelection().with_series(error, wrong), smooth=0.0)
    message, [buffer] = Lines().frame(logged, selection, 400)
    first, second = message["series"]
    n = first["n"]
    np.testing.assert_allclose(np.frombuffer(buffer, "<f4")[n : 2 * n], FALLING, rtol=1e-5)
    assert "problem" not in first
    assert second["problem"] == "no series 'acc' is recorded; did you mean 'accuracy'?"
    head, [content] = export("csv", logged, selection)
    assert "error" not in head
    rows = bytes(content).decode().splitlines()
    assert len(rows) == 1 + len(STEPS)
    assert rows[1].startswith(f"{ROOT},= 1 - accuracy,0,")


def test_a_dataset_has_no_formulas_and_says_so(tmp_path: Path) -> None:
    run = recorded(tmp_path / "run.zarr")
    mean = (ROOT, "= mean(grad_norm)")
    selection = PanelSelection(home="grad_norm").with_series(("head", "grad_norm"), mean)
    told, _ = export("netcdf", run, selection)
    assert "without formulas" in told["note"]
    code, _ = export("code", run, selection)
    assert repr(mean[1]) in code["text"]
    png, _ = export("png", run, selection)
    assert "error" not in png


def test_the_trait_takes_a_formula_that_can_be_read(logged: FakeSource) -> None:
    assert check("series", [("", "= 1 - accuracy")], logged, []) == ((ROOT, "= 1 - accuracy"),)
    with pytest.raises(FormulaError, match="at its end"):
        check("series", [("", "= 1 -")], logged, [])
