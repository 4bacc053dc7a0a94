"""Many processes at once: those that write know nothing of the index, those that look share it."""

import multiprocessing
import shutil
import sqlite3
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import notebook_probe as nbp
from notebook_probe.record.store.noted import note_place
from tests.catalogues.build import recorded, writing

N = 8


def at_once(act: Callable[..., None], *given: Any) -> list[int | None]:
    """Exit codes of eight processes that begin together, each with its number."""
    context = multiprocessing.get_context("fork")
    barrier = context.Barrier(N)

    def work(n: int) -> None:
        barrier.wait()
        act(n, *given)

    works = [context.Process(target=work, args=(n,)) for n in range(N)]
    for one in works:
        one.start()
    for one in works:
        one.join()
    return [one.exitcode for one in works]


def write_and_open_no_database(n: int, folder: str) -> None:
    def refuse(event: str, given: tuple[Any, ...]) -> None:
        is_index = event == "open" and "catalogue.sqlite" in str(given[0])
        if is_index or event == "sqlite3.connect":
            raise AssertionError(f"{event} {given}")

    sys.addaudithook(refuse)
    for i in range(2):
        with writing(f"{folder}/{n}-{i}.zarr", [float(n), float(i)]) as writer:
            writer.flush()


def test_writers_never_open_the_index_so_that_none_waits_while_it_is_locked(
    own_home: Path, tmp_path: Path
) -> None:
    recorded(tmp_path / "first.zarr")
    with nbp.catalogue() as cat:
        assert len(cat.runs()) == 1
    held = sqlite3.connect(own_home / "catalogue.sqlite", isolation_level=None)
    held.execute("BEGIN EXCLUSIVE")
    try:
        assert at_once(write_and_open_no_database, str(tmp_path)) == [0] * N
    finally:
        held.close()
    with nbp.catalogue() as cat:
        found = {(row["name"], row["last.loss"]) for row in cat.runs("name != 'first'")}
    assert found == {(f"{n}-{i}", float(i)) for n in range(N) for i in range(2)}


def look_and_add(n: int, folder: str, real: str) -> None:
    warnings.simplefilter("error")  # of an index that is locked
    with nbp.catalogue() as cat:
        for i in range(2):
            place = Path(folder, f"{n}-{i}.zarr")
            shutil.copytree(real, place)
            note_place(place)
            assert not cat.refresh().unreadable
            ours = f"name == '{n}-{i}' or run == '{place}'"
            assert len(cat.runs(ours)) == 1


def test_eight_processes_make_and_refresh_one_index_at_once_and_each_finds_its_own(
    own_home: Path, tmp_path: Path
) -> None:
    real = recorded(tmp_path / "real.zarr")
    for n in range(12):
        note_place(shutil.copytree(real, tmp_path / f"before{n}.zarr"))
    assert not (own_home / "catalogue.sqlite").exists()
    assert at_once(look_and_add, str(tmp_path), str(real)) == [0] * N
    with nbp.catalogue() as cat, nbp.catalogue("sqlite://") as fresh:
        assert len(cat.runs()) == 1 + 12 + 2 * N
        assert cat.runs().rows == fresh.runs().rows
