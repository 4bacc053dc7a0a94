"""What a record claims is checked where it is read: one clear error, or the rest as it is."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import notebook_probe as nbp
from notebook_probe.catalogues.documents import read_document
from notebook_probe.command_line import main
from notebook_probe.errors import RecordFormatError, RecordMismatchError, RecordWarning
from notebook_probe.explorer.parts.history import CheckpointHistory
from notebook_probe.figures import overview
from notebook_probe.figures.style import encoded
from notebook_probe.record import RecordWriter, open_record
from notebook_probe.record.format.codec import encode
from notebook_probe.record.format.source import Event
from notebook_probe.record.views.thinning.averages import Averages
from tests.explorer.fakes import FakeSource
from tests.hostile.corpus import CORPUS
from tests.hostile.editing import Spoil, node, numbers, root_attrs, text
from tests.record.build import GRAD, MODULES, fill, new_writer

STEP, GRADS = "scalars/every_1/step", "scalars/every_1/grad_norm"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("claims") / "whole.zarr"
    with new_writer(folder) as writer:
        stream = writer.stream("every_1")
        stream.extend(["conv1", "fc"], [GRAD])
        fill(stream, range(8))
        writer.event(3, "attach", "fc")
    return folder


@pytest.fixture
def folder(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "run.zarr"))


@pytest.mark.parametrize("codec", ["gzip", "zstd", "sharding_indexed", "numcodecs.pickle"])
def test_a_codec_that_is_not_of_the_format_never_decompresses(folder: Path, codec: str) -> None:
    bytes_codec = {"name": "bytes", "configuration": {"endian": "little"}}
    node(GRADS, codecs=[bytes_codec, {"name": codec, "configuration": {"level": 1}}])(folder)
    with pytest.raises(RecordFormatError, match=f"codecs .*{codec}.*blosc, bytes, vlen-utf8 are"):
        open_record(folder).series("fc", "grad_norm")


def test_what_zarr_repeats_of_a_record_is_cut_off(folder: Path) -> None:
    node(GRADS, fill_value="x" * 10_000)(folder)
    with pytest.raises(RecordFormatError, match=r"cannot read .*grad_norm") as raised:
        open_record(folder).series("fc", "grad_norm")
    assert len(str(raised.value)) < 2_000


@pytest.mark.parametrize("length", [0, -1, 2**62, 0.5])
def test_an_array_with_chunks_of_no_possible_size_is_left_out(folder: Path, length: float) -> None:
    grid = {"name": "regular", "configuration": {"chunk_shape": [length, 2]}}
    node(GRADS, chunk_grid=grid)(folder)
    with pytest.warns(RecordWarning, match="left out.*grad_norm has shape .* no chunk is empty"):
        record = open_record(folder)
    assert "grad_norm" not in record.data


@pytest.mark.parametrize("steps", [range(-5, 3), [0, 1, 2, 2, 4, 5, 6, 7], range(8, 0, -1)])
def test_steps_that_do_not_grow_from_0_are_refused(folder: Path, steps: range) -> None:
    numbers(STEP, list(steps))(folder)
    with pytest.raises(RecordFormatError, match=r"every_1/step has the step .* grow from 0"):
        open_record(folder).series("fc", "grad_norm")


def test_averages_end_where_steps_do_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    class Falling:
        name, n_rows, modules, variables, version = "every_1", 9, ("fc",), (GRAD,), ()

        def steps(self, start: int = 0, stop: int | None = None) -> np.ndarray:
            return np.arange(-9, -18, -1)[start:stop]

        def values(self, name: str, start: int, stop: int, modules: list[str]) -> np.ndarray:
            return np.ones((stop - start, len(modules)), np.float32)

    averages = Averages("grad_norm", ["fc"], 0.5, log=False, thin=False)
    assert averages.read_new({"every_1": Falling()}, 100) > 0  # type: ignore[dict-item]


def all_rows(n: int) -> Spoil:
    def spoil(folder: Path) -> None:
        for name, more in (("step", []), ("time", []), ("grad_norm", [2])):
            node(f"scalars/every_1/{name}", shape=[n, *more])(folder)

    return spoil


@pytest.mark.parametrize("n", [10**15, 10**9, 2**20])
def test_rows_that_no_chunk_holds_are_refused_before_room_is_made(folder: Path, n: int) -> None:
    all_rows(n)(folder)
    with pytest.raises(RecordFormatError, match=rf"every_1/step has {n} rows, the last of step -1"):
        open_record(folder).data.load()


def test_chunks_that_are_missing_before_the_last_are_counted(folder: Path) -> None:
    n = 65536 * 20
    all_rows(n)(folder)
    last = folder / STEP / "c/19"
    shutil.copy(folder / STEP / "c/0", last)
    full = np.arange(n - 65536, n)
    last.write_bytes(encode(full))
    with pytest.raises(RecordFormatError, match="every_1/step has 2 of its 20 chunks"):
        open_record(folder).series("fc", "grad_norm")


def long_settings(folder: Path) -> None:
    root_attrs(config=json.dumps({f"n{i}": i for i in range(100_000)}))(folder)


@pytest.mark.parametrize("spoil", [all_rows(10**15), long_settings], ids=["rows", "settings"])
def test_one_bad_record_never_stops_the_table_of_the_others(
    folder: Path, whole: Path, tmp_path: Path, spoil: Spoil
) -> None:
    pytest.importorskip("sqlalchemy")
    spoil(folder)
    shutil.copytree(whole, tmp_path / "good.zarr")
    with nbp.catalogue(tmp_path / "index.sqlite", root=tmp_path) as cat:
        cat.rebuild()
        assert str(tmp_path / "good.zarr") in [row["run"] for row in cat.runs()]


def test_settings_longer_than_any_writer_keeps_are_not_believed(folder: Path) -> None:
    long_settings(folder)
    assert not [name for name in read_document(folder).row if name.startswith("config.")]


@pytest.mark.parametrize("detail", ["", "{", "[]", "null", '{"step": "a"}', "[" * 5000])
def test_a_damaged_checkpoint_event_is_left_out_of_the_history(detail: str, tmp_path: Path) -> None:
    good = {"step": 2, "bytes": 3, "path": "s3://bucket/2.pt", "loss": 0.5}
    source = FakeSource()
    source.events = (
        Event(1, 1, "checkpoint", "x", detail),
        Event(2, 2, "checkpoint", "x", json.dumps(good)),
    )
    rows = CheckpointHistory(source, None)._lines_now()["checkpoints"]
    assert [row["step"] for row in rows] == [2]


@pytest.mark.parametrize(
    "path", [r"\\evil\share\x", "//evil/share/x", "/etc/passwd", "../../../etc/passwd", "s3://b/x"]
)
def test_a_path_that_leads_out_of_a_records_folder_is_never_looked_for(
    path: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    source = FakeSource()
    source.location = str(tmp_path / "run.zarr")
    detail = {"step": 2, "bytes": 3, "path": path, "loss": 0.5}
    source.events = (Event(2, 2, "checkpoint", "x", json.dumps(detail)),)
    looked: list[Path] = []

    def look(one: Path) -> bool:
        looked.append(one)
        return False

    monkeypatch.setattr(Path, "exists", look)
    (row,) = CheckpointHistory(source, None)._lines_now()["checkpoints"]
    assert (row["gone"], looked) == (False, [])


@pytest.mark.parametrize("name", [r"$\frac{$", "$x", "a$b$c", "$$"])
def test_a_name_is_never_a_formula_in_a_picture(folder: Path, name: str) -> None:
    root_attrs(title=name)(folder)
    text("scalars/every_1/module", [name, "fc"])(folder)
    picture = overview(open_record(folder), "grad_norm", [(name, "grad_norm")])
    assert encoded(picture, "svg")


def test_a_title_of_any_length_is_cut(folder: Path) -> None:
    root_attrs(title="t" * 200_000)(folder)
    record = open_record(folder)
    assert len(record.name) == 1000
    assert encoded(overview(record, "grad_norm"), "png")


def test_what_utf8_cannot_hold_of_a_title_is_spelled_out(folder: Path, tmp_path: Path) -> None:
    root_attrs(title="a\ud800b")(folder)
    opened = nbp.open_run(folder)
    page = opened.to_html(tmp_path / "run.html")
    assert r"<title>a\ud800b" in page.read_text("utf-8")


def test_the_error_of_a_record_with_a_name_of_any_length_keeps_its_beginning_and_end(
    folder: Path,
) -> None:
    text("modules/module", ["(root)", "m" * 200_000, "conv2", "fc"])(folder)
    with pytest.raises(RecordMismatchError, match=r"holds the record of another model") as error:
        again(folder)
    assert len(str(error.value)) < 5_000


@pytest.mark.parametrize("name", ["\x1b[31mred", "a\u202eb", "a\0b", "m" * 200_000])
def test_names_of_settings_cannot_steer_the_terminal(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    root_attrs(config=json.dumps({name: 1}))(folder)
    assert main(["show", str(folder)]) == 0
    printed = capsys.readouterr().out
    assert "config." in printed
    assert not [one for one in printed if not one.isprintable() and one != "\n"]
    assert max(map(len, printed.splitlines())) < 1000


def test_names_that_hdf5_cannot_hold_are_spelled_out(folder: Path, tmp_path: Path) -> None:
    h5netcdf = pytest.importorskip("h5netcdf")
    text("scalars/every_1/module", ["a\0b", "fc"])(folder)
    text("modules/module", ["(root)", "a\0b", "conv2", "fc"])(folder)
    root_attrs(title="a\ud800b", giant=10**400)(folder)
    open_record(folder).to_netcdf(tmp_path / "run.nc")
    with h5netcdf.File(tmp_path / "run.nc") as file:
        assert r"a\0b" in [
            one.decode() if isinstance(one, bytes) else one for one in file["modules/module"][:]
        ]


def test_a_text_that_hdf5_has_no_room_for_is_cut_off(folder: Path, tmp_path: Path) -> None:
    h5netcdf = pytest.importorskip("h5netcdf")
    node(GRADS, attributes={"long_name": "é" * 200_000, "units": "1", "n" * 200_000: "m"})(folder)
    open_record(folder).to_netcdf(tmp_path / "run.nc")
    with h5netcdf.File(tmp_path / "run.nc") as file:
        found = dict(file["every_1/grad_norm"].attrs)
    assert found["long_name"] == "é" * 30_000 + "…"
    assert found["n" * 1_000] == "m"


@pytest.mark.slow
def test_more_attributes_than_a_file_can_hold_are_one_clear_error(
    folder: Path, tmp_path: Path
) -> None:
    root_attrs(**{f"a{i}": i for i in range(100_000)})(folder)
    with pytest.raises(RecordFormatError, match=r"has 1000\d\d attributes; .* holds 60000 at most"):
        open_record(folder).to_netcdf(tmp_path / "run.nc")
    assert not (tmp_path / "run.nc").exists()


def again(folder: Path) -> None:
    RecordWriter(folder, title="run", modules=MODULES).close()


@pytest.mark.parametrize("value", [3, True, "text", [[]], {"a": 1}, None])
def test_changed_modules_of_another_kind_are_one_error_when_a_record_is_continued(
    folder: Path, value: object
) -> None:
    root_attrs(changed_modules=value)(folder)
    with pytest.raises(RecordFormatError, match=r"changed_modules=.* a list of names is expected"):
        again(folder)


@pytest.mark.parametrize("starts", [[0] * 200_000, [0, -5], [0, 10**30], [], "0", [0.5]])
def test_branches_that_cannot_be_are_one_short_error(folder: Path, starts: object) -> None:
    root_attrs(branches=starts)(folder)
    for use in (open_record, again):
        with pytest.raises(RecordFormatError, match=r"branches=.* first steps") as error:
            use(folder)
        assert len(str(error.value)) < 400


def test_chunks_that_are_nested_too_deep_are_as_none_chosen(folder: Path) -> None:
    root_attrs(chunks="[" * 100_000)(folder)
    again(folder)
    assert open_record(folder).series("fc", "grad_norm").size == 8


def test_the_corpus_has_what_it_promises() -> None:
    assert len(CORPUS) >= 400
    use: Callable[[Path], None] = CORPUS["branches: huge"]
    assert callable(use)
