"""The same questions, the same answers, in PostgreSQL; and many processes that write it at once."""

import math
import multiprocessing
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import notebook_probe as nbp
from notebook_probe.catalogues.finding.place import own_host
from notebook_probe.catalogues.index import Index
from notebook_probe.catalogues.index.database import open_database
from notebook_probe.errors import MissingExtraError
from tests.catalogues.build import recorded, writing
from tests.catalogues.postgres_server import postgres_server
from tests.catalogues.query.by_hand import check_answers

pytestmark = pytest.mark.postgres

QUESTIONS: list[Any] = [
    None,
    "params.lr < 1e-2",
    "params.lr == 0.1 or name == 'b1'",
    "not (params.lr >= 0.01) and state == 'finished'",
    "last.loss is nan",
    "best.loss <= 0.5",
    "name in ['b0', 'b3', 'Ä\u20ac']",
    "note is missing",
    "config.name has 'x'",
    "config.odd != 3",
    "tags has 'good'",
    {"config.sizes": [4, 8]},
    {"config.lr": {"$gt": 0, "$lte": 0.001}, "config.on": True},
    {"config.name": {"$ne": "x\u0000"}},
    lambda row: row["steps"] == 2,
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with postgres_server(tmp_path_factory.mktemp("postgres")) as url:
        yield url


@pytest.fixture
def database(server: str) -> str:
    with nbp.catalogue(server) as cat:
        forget_all(cat._index)
    return server


def forget_all(index: Index) -> None:
    index.replace([one.id for one in index.known().values()], ())


def several(folder: Path) -> None:
    odd: list[Any] = [3, "3", None, True, 3.0, [3], 10**30, "x\u0000"]
    for n, lr in enumerate([0.1, 0.01, 1e-3, 1e-4, 0.0, -1.0, 1e300, 1e-300]):
        losses = [1.0, math.nan if n == 2 else n / 4]
        more = {
            "sizes": [4, 8] if n % 2 else [4],
            "on": n % 3 == 0,
            "name": "x\u0000" if n else "Ä",
        }
        recorded(folder / f"b{n}.zarr", losses, lr=lr, odd=odd[n], **more)


def test_every_question_has_the_same_answer_on_both(database: str, tmp_path: Path) -> None:
    several(tmp_path)
    with nbp.catalogue(database) as lab, nbp.catalogue(tmp_path / "x.sqlite") as mine:
        for asked in QUESTIONS:
            one, other = lab.runs(asked, sort="name"), mine.runs(asked, sort="name")
            assert repr(one.rows) == repr(other.rows), asked
        for column in ("config.odd", "last.loss", "name"):
            for descending in (False, True):
                one = lab.runs(sort=column, descending=descending, limit=5)
                other = mine.runs(sort=column, descending=descending, limit=5)
                assert one["run"] == other["run"]


def test_every_operator_by_hand(database: str) -> None:
    index = Index(open_database(database))
    check_answers(index)
    forget_all(index)
    index.close()


def test_what_changes_and_goes_is_followed(database: str, tmp_path: Path) -> None:
    several(tmp_path)
    with nbp.catalogue(database) as cat:
        assert cat.refresh().added == 8
        shutil.rmtree(tmp_path / "b3.zarr")
        recorded(tmp_path / "b2.zarr", [5.0])
        assert len(cat.runs("name == 'b3'")) == 0
        assert cat.runs("name == 'b2'")["last.loss"] == [5.0]
        assert len(cat.runs()) == 7
        before = cat.runs(sort="name").rows
        cat.rebuild()
        assert repr(cat.runs(sort="name").rows) == repr(before)


def test_folders_of_another_machine_are_left_to_it(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(tmp_path / "mine.zarr")
    shared = recorded(tmp_path / "shared.zarr")
    with monkeypatch.context() as patch:
        patch.setattr("socket.gethostname", lambda: "far away")
        own_host.cache_clear()
        with nbp.catalogue(database) as there:
            assert len(there.runs()) == 2
    own_host.cache_clear()
    shutil.rmtree(tmp_path / "mine.zarr")
    with nbp.catalogue(database) as here:
        assert sorted(here.runs()["run"]) == [str(tmp_path / "mine.zarr"), str(shared)]


def work(url: str, folder: str, n: int) -> None:
    for i in range(4):
        with writing(f"{folder}/{n}-{i}.zarr"):
            pass
        with nbp.catalogue(url) as cat:
            cat.refresh()


def test_eight_processes_write_the_index_at_once_and_none_is_lost(
    database: str, tmp_path: Path
) -> None:
    context = multiprocessing.get_context("fork")
    works = [context.Process(target=work, args=(database, str(tmp_path), n)) for n in range(8)]
    for one in works:
        one.start()
    for one in works:
        one.join()
    assert [one.exitcode for one in works] == [0] * 8
    with nbp.catalogue(database) as cat:
        assert len(cat._index.known()) == 32, "as they left it"
        names = sorted(cat.runs()["name"])
    assert names == sorted(f"{n}-{i}" for n in range(8) for i in range(4))


def test_a_server_that_is_not_there_says_so() -> None:
    with pytest.raises(Exception, match="connection"):
        nbp.catalogue("postgresql://nobody@127.0.0.1:1/none")


def test_the_driver_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"notebook-probe\[postgres\]"):
        nbp.catalogue("postgresql://nobody@127.0.0.1:1/none")
