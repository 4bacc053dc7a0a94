"""What is handed on equals what was recorded, thinned, and stays below its size."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import notebook_probe as nbp
from notebook_probe.explorer import Panel
from notebook_probe.explorer.draw.measured_steps import CARRIED
from notebook_probe.explorer.draw.view import fresh_selection
from notebook_probe.explorer.handed_on import saved_panel
from notebook_probe.explorer.handed_on.package import GRAPH, Looked, Package, Packer, Place
from notebook_probe.explorer.messages.opened_status import OpenedStatus
from notebook_probe.explorer.messages.selection import PanelSelection
from notebook_probe.graph import Graph, Node
from notebook_probe.graph.recorded import detail_of
from notebook_probe.record.format.notes import MODEL_GRAPH
from notebook_probe.record.format.source import Event
from notebook_probe.record.read.reader import OpenedRecord, open_record
from notebook_probe.record.views.xarray_views import RunSource
from tests.explorer.fakes import START_MS, FakeSource, FakeStream
from tests.explorer.handed_on.unpacked import unpacked
from tests.explorer.parts.test_history import branched
from tests.models import made, mlp

N_STEPS = 2000
MODULES = tuple("abc")


@pytest.fixture
def long_source() -> FakeSource:
    """Gradient norms at three modules, one of which was not finite once; a loss."""
    random = np.random.default_rng(0)
    stream = FakeStream("every_1", MODULES, ["grad_norm", "weight_norm"])
    norms = np.exp(random.normal(size=(N_STEPS, 3))).astype(np.float32)
    norms[700, 1] = np.inf
    norms[:, 2] = np.where(np.arange(N_STEPS) < 1200, norms[:, 2], np.nan)
    stream.append(range(N_STEPS), grad_norm=norms, weight_norm=norms * 2)
    logged = FakeStream("logged", ["(root)"], ["loss"], logged=True)
    logged.append(range(N_STEPS), loss=random.normal(size=(N_STEPS, 1)))
    return FakeSource(stream, logged)


def packed(
    source: RunSource,
    selection: PanelSelection | None = None,
    place: Place = "file",
    most: int = 2_000_000,
) -> Package:
    looked = Looked(selection or fresh_selection(source))
    return Packer(source).package(looked, OpenedStatus(source).head(), place, most_bytes=most)


def test_cells_are_the_means_and_maxima_of_the_recorded_steps(long_source: FakeSource) -> None:
    found = unpacked(packed(long_source).text).frames["heat", "grad_norm"]
    told, columns = found.message, found.message["columns"]
    assert (told["rows"], columns) == (list(MODULES), 500)
    size = N_STEPS // columns
    blocks = long_source.given[0].values("grad_norm").astype(np.float64).T.reshape(3, columns, size)
    known = np.isfinite(blocks)
    with np.errstate(invalid="ignore"):
        mean = np.where(known, blocks, 0).sum(2) / known.sum(2)
    largest = np.where(known, blocks, -np.inf).max(2)
    shown = known.any(2)
    for place, expected in [(0, mean), (2, largest)]:
        cells = found.floats(place).reshape(3, columns)
        assert np.allclose(cells[shown], expected[shown], rtol=2**-16, atol=0)
        assert np.isnan(cells[2, 1300 // size])
    states = np.frombuffer(found.buffers[1], np.uint8).reshape(3, columns)
    assert states[1, 700 // size] == 2
    offsets = np.frombuffer(found.buffers[3], np.uint8).reshape(3, columns)
    lasts = size - 1 - known[:, :, ::-1].argmax(2)
    measured = states % CARRIED != 1
    np.testing.assert_array_equal(offsets[measured & known.any(2)], lasts[measured & known.any(2)])


def test_a_file_has_what_was_printed_and_a_notebook_has_it_beside_the_panel(
    long_source: FakeSource,
) -> None:
    assert unpacked(packed(long_source).text).said("output")["kept"] is False
    lines = [f"line {k}" for k in range(300)]
    long_source.events = (Event(5, START_MS, "output", "\n".join(lines), "{}"),)
    said = unpacked(packed(long_source).text).said("output")
    assert said["lines"] == [[5, line] for line in lines[100:]]
    assert (said["live"], said["kept"]) == (False, True)
    first = unpacked(packed(long_source, place="notebook").text).head["first"]
    assert "output" not in {one["type"] for one in first}


def test_a_line_holds_recorded_values_at_their_steps(long_source: FakeSource) -> None:
    found = unpacked(packed(long_source).text).frames["lines", ""]
    [line] = found.message["series"]
    numbers = found.floats(0)
    x, y = (numbers[line["offset"] + k * line["n"] :][: line["n"]] for k in (0, 1))
    steps = (x + found.message["x0"]).astype(int)
    recorded = long_source.given[1].values("loss")[:, 0]
    assert line["n"] <= 1201
    assert np.array_equal(y, recorded[steps])
    assert {int(recorded.argmin()), int(recorded.argmax())} <= {*steps.tolist()}


def test_the_line_below_the_bar_is_told_what_it_says(long_source: FakeSource) -> None:
    said = unpacked(packed(long_source).text).said
    saved, status = said("saved"), said("status")
    assert saved["open"] == 'nbp.open_run("nowhere").explore()'
    assert saved["ended_ms"] == START_MS + (N_STEPS - 1) * 100
    assert saved["left_out"] == []
    assert status["scalar"][:2] == [
        "loss",
        pytest.approx(long_source.given[1].values("loss")[-1, 0]),
    ]
    assert said("model")["live"] is False


def test_seconds_are_those_of_the_recorded_rows(long_source: FakeSource) -> None:
    clock = unpacked(packed(long_source).text).said("saved")["clock"]
    assert np.allclose(clock["seconds"], np.array(clock["steps"]) * 0.1)
    assert (clock["steps"][0], clock["steps"][-1]) == (0, N_STEPS - 1)


def test_epochs_are_handed_on_with_their_starts(long_source: FakeSource) -> None:
    assert unpacked(packed(long_source).text).said("saved")["epochs"] == []
    long_source.events = tuple(
        Event(step, START_MS, "epoch", "", f'{{"epoch": {number}}}')
        for number, step in enumerate((0, 500, 1500))
    )
    found = unpacked(packed(long_source).text)
    assert found.said("saved")["epochs"] == [[0, 0], [500, 1], [2500, 3]]
    assert found.frames["lines", ""].message["refused"] == {}


def test_a_notebook_keeps_what_was_looked_at_and_a_file_the_rest_too(
    long_source: FakeSource,
) -> None:
    selection = fresh_selection(long_source)
    assert selection.home == "grad_norm"
    assert ("heat", "weight_norm") in unpacked(packed(long_source, selection).text).frames
    kept = unpacked(packed(long_source, selection, "notebook").text)
    assert set(kept.frames) == {("lines", ""), ("heat", "grad_norm")}
    assert "weight_norm" in kept.said("status")["recorded"], "it can be picked, and says so"


def test_what_does_not_fit_is_named_and_the_home_quantity_comes_first(
    long_source: FakeSource,
) -> None:
    whole = packed(long_source)
    assert not whole.left_out
    sizes = range(len(whole.text) + 30_000, 0, -2000)
    tries = ((most, packed(long_source, most=most)) for most in sizes)
    most, tight = next(one for one in tries if one[1].left_out)
    assert tight.left_out == ("weight_norm",)
    assert len(tight.text) <= most
    found = unpacked(tight.text)
    assert ("heat", "grad_norm") in found.frames
    assert ("heat", "weight_norm") not in found.frames
    assert found.said("saved")["left_out"] == ["weight_norm"]


def test_zoom_and_rows_of_the_panel_leave_nothing_away(long_source: FakeSource) -> None:
    zoomed = (
        fresh_selection(long_source).looking_at("window", (10.0, 20.0)).looking_at("rows", ("a",))
    )
    found = unpacked(packed(long_source, zoomed).text)
    told = found.frames["heat", "grad_norm"].message
    assert (told["first_step"], told["last_step"], len(told["rows"])) == (0, N_STEPS - 1, 3)
    assert found.said("selection")["window"] == [10.0, 20.0]


def test_the_graph_of_the_network_is_handed_on_and_one_that_is_damaged_is_not(
    long_source: FakeSource,
) -> None:
    graph = Graph("exported", "Net", (Node("x", "input", "", ""),), (), ())
    long_source.events = (Event(3, START_MS, MODEL_GRAPH, "", detail_of(graph)),)
    told = unpacked(packed(long_source, place="notebook").text).frames["graph", GRAPH].message
    assert told["nodes"] == [["x", "input", "", "", None, None]]
    long_source.events = (*long_source.events, Event(4, START_MS, MODEL_GRAPH, "", "{}"))
    assert ("graph", GRAPH) not in unpacked(packed(long_source).text).frames


def test_what_a_growing_run_gains_is_in_the_next_package(long_source: FakeSource) -> None:
    packer, looked = Packer(long_source), Looked(fresh_selection(long_source))
    status = OpenedStatus(long_source)
    packer.package(looked, status.head(), "file")
    n_read = long_source.given[0].n_values_read
    long_source.given[0].append([N_STEPS], grad_norm=[[1, 2, 3]], weight_norm=[[1, 2, 3]])
    text = packer.package(looked, status.head(), "file").text
    assert unpacked(text).frames["heat", "grad_norm"].message["end_step"] == N_STEPS
    assert long_source.given[0].n_values_read - n_read < 100, "what was read is not read again"


def test_a_source_without_any_value_is_handed_on_too() -> None:
    found = unpacked(packed(FakeSource(FakeStream("every_1", MODULES, ["grad_norm"]))).text)
    assert found.said("status")["recorded"] == {}
    assert found.said("saved")["clock"] == {"steps": [], "seconds": []}


@pytest.mark.slow
def test_the_line_that_was_left_for_a_branch_is_handed_on_with_its_alerts(tmp_path: Path) -> None:
    branched(tmp_path / "record")
    source = open_record(tmp_path / "record")
    selection = replace(fresh_selection(source), home="grad_norm", series=(("conv1", "grad_norm"),))
    head = OpenedStatus(source).head()
    found = unpacked(Packer(source).package(Looked(selection), head, "notebook").text)
    strip = found.said("history")
    assert (strip["branch"], strip["fork"], strip["left"]["to"], strip["way"]) == (3, 5, 18, None)
    assert [one["step"] for one in found.said("left")["rows"]] == [16]
    heat = found.frames["left_heat", "grad_norm"]
    assert (heat.message["type"], heat.message["last_step"]) == ("left_heat", 17)
    [line] = found.frames["left_lines", ""].message["series"]
    assert (line["first_step"], line["last_step"]) == (4, 17)
    first = OpenedRecord(tmp_path / "record", 1)
    alone = unpacked(Packer(first).package(Looked(fresh_selection(first)), head, "notebook").text)
    assert alone.said("history")["left"] is None
    assert not any(kind.startswith("left") for kind, _ in alone.frames)


def test_a_model_of_79_modules_and_2000_steps_fits(tmp_path: Path) -> None:
    """Noise, which nothing makes smaller; what there is no room for is named."""
    random, names = np.random.default_rng(0), [f"blocks.{k}.attention" for k in range(79)]
    quantities = ["grad_norm", "update_ratio", *(f"quantity_{k}" for k in range(8))]
    stream = FakeStream("every_1", names, quantities)
    values = {one: np.exp(random.normal(size=(N_STEPS, 79))) for one in quantities}
    stream.append(range(N_STEPS), **values)
    source = FakeSource(stream, modules=names)
    file = Panel(source).to_html(tmp_path / "run.html")
    assert 1_500_000 < file.stat().st_size <= 2_000_000
    [text] = re.findall(r'id="package">([^<]+)<', file.read_text())
    kept = {key for _, key in unpacked(text).frames}
    left_out = unpacked(text).said("saved")["left_out"]
    assert {"update_ratio", "grad_norm"} < kept
    assert kept - {""} | set(left_out) == set(quantities)
    assert left_out
    notebook = packed(source, place="notebook", most=saved_panel.MOST_BYTES)
    assert len(notebook.text) <= saved_panel.MOST_BYTES
    assert not notebook.left_out


def test_the_quantity_that_is_looked_at_is_there_in_fewer_columns_if_need_be() -> None:
    random, names = np.random.default_rng(0), [f"blocks.{k}.attention" for k in range(79)]
    stream = FakeStream("every_1", names, ["grad_norm", "update_ratio"])
    noise = np.exp(random.normal(size=(2, N_STEPS, 79)))
    stream.append(range(N_STEPS), grad_norm=noise[0], update_ratio=noise[1])
    source = FakeSource(stream, modules=names)
    home = fresh_selection(source).home
    whole = packed(source, place="notebook", most=saved_panel.MOST_BYTES)
    columns = unpacked(whole.text).frames["heat", home].message["columns"]
    assert unpacked(whole.text).said("saved")["most"] == saved_panel.MOST_BYTES
    most = len(whole.text) - 60_000  # what it takes, less than its heat map
    tight = packed(source, place="notebook", most=most)
    found = unpacked(tight.text)
    assert len(tight.text) <= most
    frame = found.frames["heat", home].message
    assert frame["columns"] <= 300 < columns
    assert frame["rows"] == names
    assert found.said("saved")["left_out"] == [f"{home} finer than 300 columns"]


def test_a_run_that_is_closed_is_handed_on_with_what_it_printed(tmp_path: Path) -> None:
    model = made(mlp)
    run = nbp.watch(model, store=tmp_path / "run.zarr", probes=None)
    nbp.keep_output(run)
    print("the last words")
    run.close()
    text = run.to_html(tmp_path / "new" / "run.html").read_text("utf-8")
    package = re.search(r'id="package">([^<]+)<', text)
    assert package is not None
    assert unpacked(package[1]).said("output")["lines"] == [[0, "the last words"]]
