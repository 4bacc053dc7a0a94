"""Folders of tests mirror the packages, and no package has too many files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import pytest

from tests.static.offenders import ROOT, refuse

pytestmark = pytest.mark.static

OF_SEVERAL = {
    "browser",
    "distributed",
    "docs",
    "frontends",
    "graph/of_libraries",
    "gpu",
    "hostile",
    "kernel",
    "libraries",
    "libraries/loops",
    "notebooks",
    "pace",
    "readers",
    "release",
    "run/interrupts",
    "site",
    "static",
    "tools",
    "trainers_apart",
}
"""Folders for a kind of tests instead of a package; CONTRIBUTING describes each."""


def homeless(rooms: Iterable[str]) -> Iterator[str]:
    """Find folders of tests that mirror no package."""
    for room in rooms:
        if room not in OF_SEVERAL and not (ROOT / "notebook_probe" / room).is_dir():
            yield f"tests/{room}/: notebook_probe/{room}/ does not exist"


def test_a_room_of_tests_is_a_package_s_or_of_a_kind_of_its_own() -> None:
    folders = {
        path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")
    }
    rooms = {folder.as_posix() for folder in folders} - {"."}
    assert rooms >= OF_SEVERAL
    refuse(homeless(sorted(rooms)), "a folder of tests mirrors a package")


def test_a_room_without_a_package_is_found() -> None:
    assert [*homeless(["record/write", "record/wriet"])] == [
        "tests/record/wriet/: notebook_probe/record/wriet/ does not exist"
    ]


MOST_FILES = 20
"""Python files in a package, in addition to `__init__.py`."""

LISTS = {"quantities/catalogue"}
"""Packages that are lists, with one file per entry."""


def crowded(rooms: Mapping[str, int]) -> Iterator[str]:
    """Find packages with more files than a reader can survey."""
    for room, n in sorted(rooms.items()):
        if n > MOST_FILES and room not in LISTS:
            yield f"notebook_probe/{room}/: {n} files; at most {MOST_FILES}"


def test_no_room_of_the_package_is_crowded() -> None:
    package = ROOT / "notebook_probe"
    files = (path for path in package.rglob("*.py") if path.name != "__init__.py")
    rooms = Counter(path.parent.relative_to(package).as_posix() for path in files)
    assert len(rooms) > 100
    refuse(crowded(rooms), "merge files that are about one concept")


def test_a_crowded_room_is_found() -> None:
    assert [*crowded({"probes/step": 21, "probes/due": 20, "quantities/catalogue": 40})] == [
        "notebook_probe/probes/step/: 21 files; at most 20"
    ]
