"""What can be known about the Binder image without building it."""

import os
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
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


@pytest.mark.parametrize("requirement", REQUIREMENTS)
def test_every_dependency_is_named_with_the_same_floor(requirement: str) -> None:
    name, versions = split(requirement)
    assert conda_packages()[CONDA_NAMES.get(name, name)] == versions


def test_python_is_pinned_to_a_version_we_support() -> None:
    major, minor = map(int, conda_packages()["python"].removeprefix("=").split("."))
    floor = tuple(map(int, PYPROJECT["requires-python"].removeprefix(">=").split(".")))
    assert (major, minor) >= floor


def test_the_package_itself_is_installed_without_touching_the_rest() -> None:
    post_build = ROOT / "binder" / "postBuild"
    assert os.access(post_build, os.X_OK)
    assert "pip install --no-cache-dir --no-deps ." in post_build.read_text("utf-8")
