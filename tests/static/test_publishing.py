"""Workflows and the recipe of conda: safe, and in agreement with the project."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

import notebook_probe as nbp
from tests.static.offenders import ROOT, at, read, refuse

pytestmark = pytest.mark.static

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
RECIPE = ROOT / "packaging" / "conda" / "recipe.yaml"
PINNED = re.compile(r"[\w-]+/[\w./-]+@[0-9a-f]{40} # v[\d.]+")
CALLED = {"torch": "pytorch", "matplotlib": "matplotlib-base"}
"""Names on conda-forge that are others than on PyPI."""
WRITING = {"id-token", "pages"}
"""Rights to write that a job may have: publishing needs them."""


def loose_actions(path: Path, text: str) -> Iterator[str]:
    """Find actions that are not pinned to a commit, followed by its version."""
    for match in re.finditer(r"uses: (.+)", text):
        if not PINNED.fullmatch(match[1]):
            yield f"{at(path, text, match.start())}: {match[1]}; write owner/name@<commit> # v1.2.3"


def loose_rights(path: Path, workflow: Mapping[str, Any]) -> Iterator[str]:
    """Find jobs with rights that they need not have, and secrets, of which there are none."""
    if workflow["permissions"] != {}:
        yield f"{at(path)}: permissions are given to single jobs"
    for name, job in workflow["jobs"].items():
        for right, access in job["permissions"].items():
            if access != "read" and right not in WRITING:
                yield f"{at(path)}: {name} may {access} {right}; allowed: {sorted(WRITING)}"
        if "timeout-minutes" not in job:
            yield f"{at(path)}: {name} has no timeout-minutes"


def missing_targets(path: Path, text: str, targets: set[str]) -> Iterator[str]:
    """Find commands of make that the Makefile does not have."""
    for match in re.finditer(r"run: make ([\w-]+)", text):
        if match[1] not in targets:
            yield f"{at(path, text, match.start())}: make {match[1]} is no target"


def every_offender(path: Path, text: str, targets: set[str]) -> Iterator[str]:
    yield from loose_actions(path, text)
    yield from loose_rights(path, yaml.safe_load(text))
    yield from missing_targets(path, text, targets)
    if "secrets." in text:
        yield f"{at(path)}: no secret is stored anywhere"


def test_workflows_are_pinned_have_few_rights_and_no_secret() -> None:
    targets = {*re.findall(r"^([\w-]+):", read(ROOT / "Makefile"), re.MULTILINE)}
    found = [one for path in WORKFLOWS for one in every_offender(path, read(path), targets)]
    assert {path.stem for path in WORKFLOWS} == {"checks", "release", "site"}
    refuse(found, "workflows are pinned, and may do little")


def test_what_is_loose_in_a_workflow_is_found_at_once() -> None:
    text = """
permissions: {contents: write}
jobs:
  build:
    permissions: {contents: write, id-token: write}
    steps:
      - uses: actions/checkout@v4
      - run: make everything
      - run: echo ${{ secrets.TOKEN }}
"""
    assert [*every_offender(Path("a.yml"), text, {"check"})] == [
        "a.yml:7: actions/checkout@v4; write owner/name@<commit> # v1.2.3",
        "a.yml:1: permissions are given to single jobs",
        "a.yml:1: build may write contents; allowed: ['id-token', 'pages']",
        "a.yml:1: build has no timeout-minutes",
        "a.yml:8: make everything is no target",
        "a.yml:1: no secret is stored anywhere",
    ]


def test_the_recipe_of_conda_says_what_the_project_says() -> None:
    project = tomllib.loads(read(ROOT / "pyproject.toml"))["project"]
    recipe = yaml.safe_load(read(RECIPE))
    assert recipe["context"]["version"] == nbp.__version__
    assert f">={recipe['context']['python_min']}" == project["requires-python"]
    needs = recipe["requirements"]
    assert needs["run"][0] == "python >=${{ python_min }}"
    assert needs["run"][1:] == [*map(on_conda, project["dependencies"])]
    assert needs["run_constraints"] == [*map(on_conda, project["optional-dependencies"]["lab"])]
    [script] = recipe["build"]["python"]["entry_points"]
    assert dict([script.split(" = ")]) == project["scripts"]
    about = recipe["about"]
    assert (about["summary"], about["license"]) == (project["description"], project["license"])


def on_conda(requirement: str) -> str:
    """The requirement in conda's words: ``numpy>=2.0`` is ``numpy >=2.0``."""
    found = re.match(r"([\w-]+)(.*)", requirement)
    assert found is not None, requirement
    return f"{CALLED.get(found[1], found[1])} {found[2]}"
