"""One class, one name: a search for a name finds one thing."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.static.offenders import ROOT, at, read, refuse

pytestmark = pytest.mark.static

CLASS = re.compile(r"^class (\w+)", re.MULTILINE)
SHARED = {
    "Dataset": "xarray writes the name of the class of `run.data` into its text",
    "WatchCallback": "each framework has one, and a program imports that of its framework",
}
"""Names that stand for several classes on purpose, and why."""


def repeated(files: Iterable[Path]) -> Iterator[str]:
    """Find names of several classes; one inside another class or function does not count."""
    places: dict[str, list[str]] = defaultdict(list)
    for file in files:
        text = read(file)
        for found in CLASS.finditer(text):
            places[found[1]].append(at(file, text, found.start()))
    for name, those in sorted(places.items()):
        if len(those) > 1 and name not in SHARED:
            yield f"{', '.join(those)}: class {name}; name each after what it is"


def test_each_class_of_the_package_has_a_name_of_its_own() -> None:
    refuse(repeated(sorted((ROOT / "notebook_probe").rglob("*.py"))), "a class has a unique name")


def test_two_classes_of_one_name_are_found(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / f"{name}.py").write_text("class Place:\n    class Inner: ...\n")
    (offender,) = repeated(sorted(tmp_path.iterdir()))
    assert offender.endswith("other.py:1: class Place; name each after what it is")
