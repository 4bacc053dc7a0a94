"""What goes into a record comes out of it, through our reader and through xarray alone."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from notebook_probe.errors import QuantityError, ScheduleError
from notebook_probe.record import ROOT, RecordWriter, Variable, open_record
from notebook_probe.record.format.missing import MEASURED_NAN, NOT_MEASURED
from notebook_probe.record.format.schema import FORMAT_VERSION
from notebook_probe.record.format.source import Floats
from tests.record.build import GRAD, LAW, MODULES, WEIGHT, fill, new_writer

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
quantities = st.from_regex(r"[a-z_][a-z0-9_]{0,20}", fullmatch=True).filter(
    lambda name: name not in ("step", "time", "module")
)
tables = hnp.arrays(
    np.float32,
    hnp.array_shapes(min_dims=3, max_dims=3, min_side=1, max_side=6),
    elements=st.floats(width=32, allow_nan=True),
)


@pytest.mark.slow
@given(
    values=tables,
    modules=st.lists(names, min_size=6, max_size=6, unique_by=lambda name: name or ROOT),
    variables=st.lists(quantities, min_size=6, max_size=6, unique=True),
    data=st.data(),
)
@settings(LAW, max_examples=20)
def test_every_value_comes_back_bit_for_bit(
    values: Floats, modules: list[str], variables: list[str], data: st.DataObject
) -> None:
    n_rows, n_variables, n_modules = values.shape
    steps = sorted(
        data.draw(st.sets(st.integers(0, 2**62), min_size=n_rows, max_size=n_rows), "steps")
    )
    flush_at = data.draw(st.integers(0, n_rows), "flush_at")
    modules, variables = modules[:n_modules], variables[:n_variables]
    with tempfile.TemporaryDirectory() as folder:
        with new_writer(Path(folder)) as writer:
            stream = writer.stream("every_1")
            stream.extend(modules, [Variable(name, "m") for name in variables])
            for i, step in enumerate(steps):
                if i == flush_at:
                    assert writer.flush(60)
                assert stream.record(step, i, values[i])
        stored = open_record(folder).streams["every_1"]
        assert stored.modules == tuple(name or ROOT for name in modules)
        assert [variable.name for variable in stored.variables] == variables
        assert stored.steps().tolist() == steps
        for place, name in enumerate(variables):
            got = np.ascontiguousarray(stored.values(name))
            expected = np.ascontiguousarray(values[:, place])
            assert np.array_equal(got.view(np.uint32), expected.view(np.uint32))


def test_plain_xarray_reads_units_names_times_and_labels(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_5", "every(5)")
        stream.extend(["conv1", "fc"], [Variable("norm", "kg", "mass", {"cell_methods": "x: sum"})])
        fill(stream, range(0, 20, 5))
    data = xr.open_zarr(tmp_path / "a.zarr", group="scalars/every_5", chunks=None)
    assert data.norm.dims == ("step", "module")
    assert data.norm.attrs == {"units": "kg", "long_name": "mass", "cell_methods": "x: sum"}
    assert data.attrs["long_name"] == "every(5)"
    assert data.norm.sel(module="fc").values.tolist() == [100, 105, 110, 115]
    assert data.norm.sel(step=10, module="conv1").item() == 10
    assert data.time.dtype.kind == "M"
    assert str(data.time.values[1])[:23] == "2023-11-14T22:13:20.005"
    assert "time" in data.norm.coords
    assert data.step.attrs == {"long_name": "optimizer step"}, "no units: a plot would say them"


@pytest.mark.slow
def test_a_fresh_process_opens_it_with_xarray_and_zarr_alone(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1")
        stream.extend(["conv1"], [GRAD])
        fill(stream, range(3))
        writer.event(1, "attach", "grad_norm at conv1")
    code = f"""
import sys, warnings
warnings.simplefilter("error")
import xarray as xr, zarr
path = {str(tmp_path / "a.zarr")!r}
assert xr.open_zarr(path, group="scalars/every_1", chunks=None).grad_norm.sum().item() == 3
assert zarr.open(path)["scalars/every_1/grad_norm"][2, 0] == 2
assert zarr.open(path + "/scalars/every_1/grad_norm")[2, 0] == 2
tree = xr.open_datatree(path, engine="zarr")
assert tree["scalars/every_1/grad_norm"].sel(module="conv1", step=2).item() == 2
assert tree["modules"]["class"].sel(module="conv1").item() == "Conv2d"
assert tree["events"]["text"].values.tolist() == ["grad_norm at conv1"]
assert not any(name.startswith("notebook_probe") for name in sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.slow
def test_importing_the_record_and_its_tables_imports_no_torch_and_no_widgets() -> None:
    code = """
import sys, notebook_probe.record
import notebook_probe.lineage.default_columns, notebook_probe.lineage.view
import notebook_probe.lineage.dataset_graph, notebook_probe.opened
found = {"torch", "IPython", "ipywidgets", "ipykernel", "matplotlib"} & set(sys.modules)
assert not found, found
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "a/b",
        "..",
        ".",
        "a.b/c",
        "<b>&amp;</b>",
        "größe λ 層",
        "\t\n",
        "x" * 5000,
        "c/0/0",
        "zarr.json",
    ],
)
def test_a_module_may_have_any_name(tmp_path: Path, name: str) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1")
        stream.extend(["conv1", name], [GRAD])
        fill(stream, range(3))
        assert writer.source.series(name, "grad_norm").values.tolist() == [100, 101, 102]
    record = open_record(tmp_path / "a.zarr")
    assert record.series(name, "grad_norm").values.tolist() == [100, 101, 102]
    assert record.data.grad_norm.sel(module=name or ROOT).values.tolist() == [100, 101, 102]
    assert {path.name for path in tmp_path.iterdir()} == {"a.zarr"}


@pytest.mark.parametrize(
    "name", ["", "a/b", "..", "1st", "a b", "größe", "<b>", "x" * 300, "step", "time", "module"]
)
def test_a_quantity_must_have_a_plain_name(tmp_path: Path, name: str) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1")
        with pytest.raises(QuantityError, match="quantity"):
            stream.extend(["conv1"], [GRAD, Variable(name)])
        assert stream.shape == (0, 0)


def test_quantities_that_differ_by_case_only_are_refused(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1")
        with pytest.raises(QuantityError, match="by case only"):
            stream.extend(["conv1"], [Variable("loss"), Variable("Loss")])


@pytest.mark.parametrize("name", ["", "../up", "a/b", "every 1"])
def test_a_stream_must_have_a_plain_name(tmp_path: Path, name: str) -> None:
    with new_writer(tmp_path / "a.zarr") as writer, pytest.raises(ScheduleError, match="stream"):
        writer.stream(name)


def test_not_measured_is_told_from_a_measured_nan(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1")
        stream.extend(["conv1"], [GRAD])
        for step, value in enumerate([1, NOT_MEASURED, MEASURED_NAN, np.inf, -np.inf]):
            stream.record(step, 0, np.array([[value]], np.float32))
    series = open_record(tmp_path / "a.zarr").series("conv1", "grad_norm")
    assert series.step.values.tolist() == [0, 2, 3, 4]
    assert np.array_equal(series, [1, np.nan, np.inf, -np.inf], equal_nan=True)


def test_an_empty_record_can_be_read(tmp_path: Path) -> None:
    new_writer(tmp_path / "a.zarr").close()
    record = open_record(tmp_path / "a.zarr")
    assert record.finished
    assert dict(record.streams) == {}
    assert record.events == ()
    assert record.data.sizes == {"module": 0, "step": 0}
    assert record.to_xarray("cube").shape == (0, 0, 0)
    assert record.to_xarray("tree").children == {}
    assert [row.name for row in record.modules] == [ROOT, "conv1", "conv2", "fc"]


def test_a_stream_without_rows_can_be_read(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        writer.stream("every_1").extend(["conv1"], [GRAD])
        writer.stream("every_9")
    record = open_record(tmp_path / "a.zarr")
    assert record.data.grad_norm.shape == (1, 0)
    assert record.series("conv1", "grad_norm").shape == (0,)
    assert xr.open_zarr(
        tmp_path / "a.zarr", group="scalars/every_1", chunks=None
    ).grad_norm.shape == (0, 1)


def test_the_modules_table_and_the_events_come_back(tmp_path: Path) -> None:
    with RecordWriter(
        tmp_path / "a.zarr", title="first", modules=MODULES, attrs={"python": "3"}
    ) as writer:
        writer.event(7, "attach", "grad_norm at <b>conv1</b>\nevery(1)")
        assert [event.text for event in writer.source.events] == [
            "grad_norm at <b>conv1</b>\nevery(1)"
        ]
    record = open_record(tmp_path / "a.zarr")
    assert record.modules == writer.source.modules
    assert record.modules[1:] == MODULES[1:]
    assert record.events == writer.source.events
    assert (record.name, record.attrs["python"], record.attrs["format_version"]) == (
        "first",
        "3",
        FORMAT_VERSION,
    )


def test_text_that_is_no_unicode_is_spelled_out(tmp_path: Path) -> None:
    """As in an error that names a file whose name cannot be decoded."""
    with new_writer(tmp_path / "a.zarr") as writer:
        writer.stream("every_1").extend(["caf\udce9"], [GRAD])
        writer.event(0, "error", "no file 'caf\udce9'")
        assert writer.flush(60)
    record = open_record(tmp_path / "a.zarr")
    assert record.events[0].text == r"no file 'caf\udce9'"
    assert record.streams["every_1"].modules == (r"caf\udce9",)


def test_a_thousand_and_more_modules_fill_more_than_one_chunk_of_names(tmp_path: Path) -> None:
    labels = [f"m{i}" for i in range(1500)]
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1")
        stream.extend(labels, [GRAD])
        stream.record(0, 0, np.arange(1500, dtype=np.float32)[None])
    stored = open_record(tmp_path / "a.zarr").streams["every_1"]
    assert stored.modules == tuple(labels)
    assert stored.values("grad_norm", modules=["m3", "m1400"]).tolist() == [[3, 1400]]
    assert stored.values("grad_norm").tolist() == [list(range(1500))]


@pytest.mark.slow
def test_a_series_longer_than_a_chunk_is_whole(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1")
        stream.extend(["conv1", "fc"], [GRAD])
        for start, stop in pairwise((0, 9_000, 9_001, 20_000, 140_000)):
            fill(stream, range(start, stop))
            assert writer.flush(60)
    values = zarr.open_array(tmp_path / "a.zarr" / "scalars" / "every_1" / "grad_norm", mode="r")
    assert np.array_equal(np.asarray(values[:, 1]), 100 + np.arange(140_000))
    assert values.nchunks > 2


def test_what_was_never_measured_takes_no_file(tmp_path: Path) -> None:
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1")
        stream.extend(["conv1"], [GRAD, WEIGHT])
        stream.record(0, 0, np.array([[1], [NOT_MEASURED]], np.float32))
    group = tmp_path / "a.zarr" / "scalars" / "every_1"
    assert (group / "grad_norm" / "c").exists()
    assert not (group / "weight_norm" / "c").exists()
