"""What can be known about the Binder image without building it."""

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping

import pytest

from tests.static.offenders import ROOT, refuse

pytestmark = pytest.mark.static

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PYPROJECT["optional-dependencies"]  # the quickstart needs two of them
# Names on conda-forge of what has another name on PyPI: the builds without a GPU or a display.
CONDA_NAMES = {
    "torch": "pytorch-cpu",
    "matplotlib": "matplotlib-base",
    "nbconvert": "nbconvert-core",
}
REQUIREMENTS = [
    requirement
    for group in (PYPROJECT["dependencies"], *(EXTRAS[name] for name in ("lab", "demo")))
    for requirement in group
    if not requirement.startswith(PYPROJECT["name"])
]


def split(requirement: str) -> tuple[str, str]:
    """The name and the version range of ``name>=1.2``."""
    matched = re.fullmatch(r"([A-Za-z0-9_-]+)(.*)", requirement)
    assert matched is not None
    return matched[1], matched[2]


def conda_packages() -> dict[str, str]:
    text = (ROOT / "binder" / "environment.yml").read_text("utf-8")
    _, entries = text.split("dependencies:")
    return dict(split(entry) for entry in re.findall(r"- (\S+)", entries))


def wrong_floors(requirements: Iterable[str], packages: Mapping[str, str]) -> Iterator[str]:
    """Find requirements that the image lacks, or has with another floor."""
    for requirement in requirements:
        name, versions = split(requirement)
        conda_name = CONDA_NAMES.get(name, name)
        if packages.get(conda_name) != versions:
            there = f"{conda_name}{packages.get(conda_name, ': missing')}"
            yield f"binder/environment.yml: {there}; pyproject.toml: {requirement}"


def test_every_dependency_is_named_with_the_same_floor() -> None:
    assert len(REQUIREMENTS) > 10
    refuse(wrong_floors(REQUIREMENTS, conda_packages()), "the image has what the project needs")


def test_another_floor_and_a_missing_package_are_found_at_once() -> None:
    assert [
        *wrong_floors(
            ["torch>=2.4", "numpy>=2.0", "zarr>=3"], {"pytorch-cpu": ">=2.4", "numpy": ">=1.0"}
        )
    ] == [
        "binder/environment.yml: numpy>=1.0; pyproject.toml: numpy>=2.0",
        "binder/environment.yml: zarr: missing; pyproject.toml: zarr>=3",
    ]


def test_python_is_pinned_to_a_version_we_support() -> None:
    major, minor = map(int, conda_packages()["python"].removeprefix("=").split("."))
    floor = tuple(map(int, PYPROJECT["requires-python"].removeprefix(">=").split(".")))
    assert (major, minor) >= floor


def test_the_package_itself_is_installed_without_touching_the_rest() -> None:
    post_build = ROOT / "binder" / "postBuild"
    assert os.access(post_build, os.X_OK)
    assert "pip install --no-cache-dir --no-deps ." in post_build.read_text("utf-8")
