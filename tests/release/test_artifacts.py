"""What wheel and source distribution hold, and what they say of themselves."""

from __future__ import annotations

import re
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
import yaml
from trove_classifiers import classifiers

import notebook_probe as nbp
from tests.release.conftest import ROOT, build_wheel

# One process makes what they share: a wheel, and a source distribution.
pytestmark = [pytest.mark.xdist_group("artifacts"), pytest.mark.slow]

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
DIST_INFO = f"notebook_probe-{nbp.__version__}.dist-info"
PYTHON = "Programming Language :: Python :: 3."


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as packed:
        return Parser().parsestr(packed.read(f"{DIST_INFO}/METADATA").decode())


def test_the_wheel_holds_the_panel_the_types_and_the_licence_and_nothing_else(wheel: Path) -> None:
    packed = {Path(name) for name in zipfile.ZipFile(wheel).namelist()}
    package = ROOT / "notebook_probe"
    present = {
        path.relative_to(ROOT)
        for pattern in ("**/*.py", "**/*.js", "**/*.css", "**/*.json", "**/*.md", "py.typed")
        for path in package.glob(pattern)
    }
    assert {path.suffix for path in present} == {".py", ".js", ".css", ".json", ".md", ".typed"}
    about = {path for path in packed if path.parts[0] == DIST_INFO}
    assert Path(DIST_INFO, "licenses", "LICENSE") in about
    assert present == packed - about


def test_the_source_distribution_makes_the_same_wheel(
    wheel: Path, sdist: Path, tmp_path: Path
) -> None:
    with tarfile.open(sdist) as packed:
        packed.extractall(tmp_path, filter="data")
    (project,) = tmp_path.iterdir()
    assert build_wheel(project, tmp_path / "again").read_bytes() == wheel.read_bytes()


def test_the_source_distribution_can_be_tested_and_holds_nothing_that_was_made(sdist: Path) -> None:
    with tarfile.open(sdist) as packed:
        names = {Path(*Path(name).parts[1:]) for name in packed.getnames()}
    assert {Path(name) for name in ("LICENSE", "CHANGELOG.md", "CITATION.cff", "Makefile")} <= names
    assert Path("tests", "release", "test_artifacts.py") in names
    made = {"build", "dist", "runs", ".venv", "__pycache__", "node_modules", ".git"}
    assert {part for name in names for part in name.parts} & made == set()


def test_one_place_says_the_version(wheel: Path, metadata: Message) -> None:
    assert "version" in PROJECT["dynamic"]
    assert metadata["Version"] == nbp.__version__
    assert str(CITATION["version"]) == nbp.__version__
    newest = re.search(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert newest is not None
    assert nbp.__version__ in newest[1]


def test_every_classifier_is_one_and_pythons_begin_at_the_floor(metadata: Message) -> None:
    named = metadata.get_all("Classifier", [])
    assert set(named) <= set(classifiers)
    minors = sorted(int(one.removeprefix(PYTHON)) for one in named if one.startswith(PYTHON))
    assert minors == [*range(minors[0], minors[-1] + 1)]
    assert metadata["Requires-Python"] == f">=3.{minors[0]}"


def test_the_citation_says_what_the_project_says() -> None:
    assert {"cff-version", "message", "title", "authors"} <= CITATION.keys()
    assert CITATION["license"] == PROJECT["license"]
    assert CITATION["abstract"] == PROJECT["description"]
    named = [author["name"].lower() for author in CITATION["authors"]]
    assert named == [author["name"].lower() for author in PROJECT["authors"]]
