"""Tests lie in the rooms of what they test."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

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
}
"""Rooms of a kind of tests instead of a package; CONTRIBUTING says what each is of."""


def homeless(rooms: Iterable[str]) -> Iterator[str]:
    """Find rooms of tests that mirror no package."""
    for room in rooms:
        if room not in OF_SEVERAL and not (ROOT / "notebook_probe" / room).is_dir():
            yield f"tests/{room}/: notebook_probe/{room}/ does not exist"


def test_a_room_of_tests_is_a_package_s_or_of_a_kind_of_its_own() -> None:
    folders = {
        path.parent.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")
    }
    rooms = {folder.as_posix() for folder in folders} - {"."}
    assert rooms >= OF_SEVERAL
    refuse(homeless(sorted(rooms)), "a room of tests mirrors a package")


def test_a_room_without_a_package_is_found() -> None:
    assert [*homeless(["record/write", "record/wriet"])] == [
        "tests/record/wriet/: notebook_probe/record/wriet/ does not exist"
    ]
