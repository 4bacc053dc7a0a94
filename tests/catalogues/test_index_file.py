"""The file of an index: removed, damaged, older, locked, without room, or somebody else's."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

import notebook_probe as nbp
from notebook_probe.errors import RecordFormatError, RecordWarning
from notebook_probe.home import HOME
from tests.catalogues.build import names, recorded


def test_the_index_can_be_removed_at_any_time(own_home: Path, tmp_path: Path) -> None:
    recorded(tmp_path / "r.zarr")
    with nbp.catalogue() as cat:
        before = cat.runs().rows
    for file in own_home.glob("catalogue.sqlite*"):
        file.unlink()
    with nbp.catalogue() as cat:
        assert cat.runs().rows == before


def test_a_damaged_index_is_made_anew(own_home: Path, tmp_path: Path) -> None:
    recorded(tmp_path / "r.zarr")
    (own_home / "catalogue.sqlite").write_bytes(b"no database at all" * 100)
    with nbp.catalogue() as cat:
        assert len(cat.runs()) == 1


def test_a_file_of_somebody_else_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "thesis.txt"
    file.write_bytes(b"my thesis " * 200)
    with pytest.raises(Exception, match="not a database"):
        nbp.catalogue(file)
    assert file.read_bytes() == b"my thesis " * 200


def test_an_index_of_an_older_version_is_made_anew_and_a_newer_is_refused(
    own_home: Path, tmp_path: Path
) -> None:
    recorded(tmp_path / "r.zarr")
    with nbp.catalogue() as cat:
        assert len(cat.runs()) == 1
    file = own_home / "catalogue.sqlite"
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE notebook_probe_schema SET version = 0")
        connection.execute("ALTER TABLE notebook_probe_runs DROP COLUMN written")
    connection.close()
    with nbp.catalogue() as cat:
        assert len(cat.runs()) == 1
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE notebook_probe_schema SET version = 99")
    connection.close()
    with pytest.raises(RecordFormatError, match="version 99"):
        nbp.catalogue()


def test_a_locked_index_is_told_of_as_it_was(
    own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("notebook_probe.catalogues.index.database.WAIT_S", 0.05)
    recorded(tmp_path / "a.zarr")
    with nbp.catalogue() as cat:
        assert names(cat.runs()) == ["a"]
        other = sqlite3.connect(own_home / "catalogue.sqlite", isolation_level=None)
        other.execute("BEGIN EXCLUSIVE")
        recorded(tmp_path / "b.zarr")
        with pytest.warns(RecordWarning, match="locked"):
            assert names(cat.runs()) == ["a"]
        other.rollback()
        other.close()
        assert names(cat.runs()) == ["a", "b"]


def test_an_index_without_room_is_told_of_as_it_was(own_home: Path, tmp_path: Path) -> None:
    recorded(tmp_path / "a.zarr")
    with nbp.catalogue() as cat:
        assert names(cat.runs()) == ["a"]
        with cat._index._engine.connect() as connection:
            connection.exec_driver_sql("PRAGMA max_page_count=1")
        for n in range(40):
            config: dict[str, Any] = {f"x{i}": "y" * 90 for i in range(40)}
            recorded(tmp_path / f"b{n}.zarr", **config)
        with pytest.warns(RecordWarning, match="full"):
            assert "a" in names(cat.runs())


def test_where_nothing_can_be_written_the_index_is_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(tmp_path / "shared" / "r.zarr")
    (tmp_path / "home").write_text("a file")
    monkeypatch.setenv(HOME, str(tmp_path / "home"))
    with pytest.warns(RecordWarning, match="in memory"):
        cat = nbp.catalogue(root=tmp_path / "shared")
    with cat:
        assert names(cat.runs()) == ["r"]
