"""Links that somebody has laid into a record: no writer follows one out of the record's folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from notebook_probe.errors import RecordFormatError
from notebook_probe.record import RecordWriter, open_record
from notebook_probe.record.store.destination import new_file
from tests.record.build import GRAD, MODULES, fill, new_writer

TEXT = "somebody's only copy"


@pytest.fixture
def closed_record(tmp_path: Path) -> Path:
    """A record, closed."""
    with new_writer(tmp_path / "a.zarr") as writer:
        stream = writer.stream("every_1")
        stream.extend(["conv1"], [GRAD])
        fill(stream, range(5))
    return tmp_path / "a.zarr"


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder with files outside of the record."""
    (tmp_path / "home/c").mkdir(parents=True)
    for name in ("thesis.tex", "c/0"):
        (tmp_path / "home" / name).write_text(TEXT)
    return tmp_path / "home"


def lay(link: Path, target: Path) -> None:
    if link.is_dir():
        link.rename(link.with_name("away"))
    link.unlink(missing_ok=True)
    link.symlink_to(target)


@pytest.mark.parametrize("modules", [MODULES, MODULES[:2]], ids=["same model", "another model"])
def test_a_lock_that_is_a_link_leaves_its_target_as_it_is(
    closed_record: Path, victim: Path, modules: tuple[object, ...]
) -> None:
    lay(closed_record / ".lock", victim / "thesis.tex")
    with pytest.raises(RecordFormatError, match=r"\.lock is a link; a file is expected"):
        RecordWriter(closed_record, title="again", modules=modules)  # type: ignore[arg-type]
    assert (victim / "thesis.tex").read_text() == TEXT


@pytest.mark.parametrize(
    ("link", "target"),
    [
        (".partial", "thesis.tex"),
        ("zarr.json.bak", "thesis.tex"),
        ("scalars/every_1/grad_norm/c/0/0", "thesis.tex"),
        ("scalars/every_1/step", "."),
        ("scalars/late.1", "."),
        ("events", "."),
        ("pyramid", "."),
    ],
)
def test_a_record_with_a_link_in_it_is_not_written(
    closed_record: Path, victim: Path, link: str, target: str
) -> None:
    lay(closed_record / link, victim / target)
    root = (closed_record / "zarr.json").read_bytes()
    with pytest.raises(
        RecordFormatError, match=rf"{link}( is a link or a device|.* its header says)"
    ):
        new_writer(closed_record)
    assert [path.read_text() for path in victim.rglob("*") if path.is_file()] == [TEXT, TEXT]
    assert (closed_record / "zarr.json").read_bytes() == root


def test_a_link_laid_while_the_record_is_written_is_not_followed(
    closed_record: Path, victim: Path
) -> None:
    writer = new_writer(closed_record)
    stream = writer.stream("every_1")
    fill(stream, range(5, 10))
    (closed_record / ".partial").symlink_to(victim / "thesis.tex")
    assert writer.flush(60), writer.last_error
    writer.close()
    assert (victim / "thesis.tex").read_text() == TEXT
    assert open_record(closed_record).series("conv1", "grad_norm").size == 10


def test_the_record_itself_may_be_reached_through_a_link(
    closed_record: Path, tmp_path: Path
) -> None:
    (tmp_path / "link.zarr").symlink_to(closed_record)
    with new_writer(tmp_path / "link.zarr") as writer:
        fill(writer.stream("every_1"), range(5, 10))
    assert open_record(closed_record).series("conv1", "grad_norm").size == 10


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
@pytest.mark.parametrize("name", [".lock", ".partial", "scalars/every_1/grad_norm/c/0/0"])
def test_a_pipe_in_a_record_is_refused_and_not_waited_for(closed_record: Path, name: str) -> None:
    (closed_record / name).unlink(missing_ok=True)
    os.mkfifo(closed_record / name)
    with pytest.raises(RecordFormatError, match=r"is no plain file|is a link or a device"):
        new_writer(closed_record)


def test_an_export_writes_over_no_link(tmp_path: Path, victim: Path) -> None:
    (tmp_path / ".a.nc.partial").symlink_to(victim / "thesis.tex")
    with new_file(tmp_path / "a.nc", overwrite=False) as partial:
        partial.write_text("numbers")
    assert (victim / "thesis.tex").read_text() == TEXT
    assert (tmp_path / "a.nc").read_text() == "numbers"
