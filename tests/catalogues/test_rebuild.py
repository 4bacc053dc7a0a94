"""A rebuild of the index: whole for everybody else, and a database that is not there."""

from pathlib import Path

import pytest

import notebook_probe as nbp
from notebook_probe.catalogues import refreshing, run_catalogue
from notebook_probe.catalogues.documents import document
from notebook_probe.errors import CatalogueError
from tests.catalogues.build import names, recorded

NOBODY = "postgresql://ann:secret@127.0.0.1:1/lab"


def test_whoever_asks_while_another_rebuilds_finds_every_run(
    own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abcde":
        recorded(tmp_path / f"{name}.zarr")
    seen: list[list[str]] = []
    with nbp.catalogue() as mine, nbp.catalogue() as other:
        assert names(other.runs()) == [*"abcde"]
        read = document.read_document

        def and_ask(place: Path) -> object:
            with monkeypatch.context() as patch:  # the other looks at nothing, it asks the index
                patch.setattr(run_catalogue.Catalogue, "_look", lambda _: None)
                seen.append(names(other.runs()))
            return read(place)

        with monkeypatch.context() as patched:
            patched.setattr(refreshing, "read_document", and_ask)
            patched.setattr(refreshing, "BATCH", 1)
            assert mine.rebuild().added == 5
        assert seen == [[*"abcde"]] * 5
        assert names(mine.runs()) == names(other.runs()) == [*"abcde"]


def test_a_rebuild_keeps_what_is_known_of_a_disk_that_does_not_answer(
    own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(tmp_path / "a.zarr")
    recorded(tmp_path / "b.zarr")
    with nbp.catalogue() as cat:
        assert len(cat.runs()) == 2
        read = document.read_document

        def away(place: Path) -> object:
            if "b.zarr" in str(place):
                raise OSError("the disk does not answer")
            return read(place)

        monkeypatch.setattr(refreshing, "read_document", away)
        assert [*cat.rebuild().unreadable] == [str(tmp_path / "b.zarr")]
        assert names(cat.runs()) == ["a", "b"]


def test_a_database_that_is_not_there_is_one_clear_error_without_the_password() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(CatalogueError, match="cannot be used") as error:
        nbp.catalogue(NOBODY)
    assert "ann:***@127.0.0.1" in str(error.value)
    assert "secret" not in str(error.value)


def test_a_database_that_goes_away_is_one_clear_error(own_home: Path, tmp_path: Path) -> None:
    recorded(tmp_path / "a.zarr")
    with nbp.catalogue(tmp_path / "index.sqlite") as cat:
        assert len(cat.runs()) == 1
        cat._index.close()
        (tmp_path / "index.sqlite").write_bytes(b"no database at all" * 500)
        for file in tmp_path.glob("index.sqlite-*"):
            file.unlink()
        with pytest.raises(CatalogueError, match=r"index\.sqlite cannot be used"):
            cat.refresh()
