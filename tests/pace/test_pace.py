"""The limit of a quick test: what is found, what is forgiven, and what is said."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.pace.clock import calibrated, slowness
from tests.pace.slow_list import FOUND, MARKED, read, write

ROOT = Path(__file__).parents[2]
TESTS = """
import time
import pytest

def test_quick(): pass

def test_long(): time.sleep(0.45)

def test_less_long(): time.sleep(0.25)

@pytest.fixture(scope="module")
def shared(): time.sleep(0.45)

def test_pays_for_a_fixture_of_all(shared): pass

@pytest.mark.slow
def test_is_marked(): time.sleep(0.45)
"""
MACHINE = """
from tests.pace import plugin

plugin.LIMIT_S, plugin.SLOW_S, plugin.FAILS_S = 0.2, 0.16, 0.4  # so that nothing takes seconds
plugin.slowness = lambda: {slowness}
"""
SLOW, NEAR = "test_some.py::test_long", "test_some.py::test_less_long"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow: takes long\n")
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "conftest.py").write_text(MACHINE.format(slowness=1.0))
    (tmp_path / "test_then.py").write_text("def test_of_another_file(): pass\n")
    return tmp_path


def run(project: Path, *options: str) -> subprocess.CompletedProcess[str]:
    plugins = ["-p", "tests.pace.plugin", "-p", "xdist.plugin", "-p", "no:cacheprovider"]
    # Other plugins that are installed, such as zarr's, take longer to import than pytest.
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT)}
    environment = {**os.environ, **alone}
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, *options],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("-n", "2")], ids=["one process", "two workers"])
def test_a_case_that_takes_longer_is_marked_or_fails_the_run_which_names_the_command(
    project: Path, options: tuple[str, ...]
) -> None:
    done = run(project, "--pace=check", *options)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    said = done.stdout.partition("more than a tenth of a second")[2]
    assert f"fails   {SLOW}" in said
    assert f"marked  {NEAR}" in said
    assert "make mark-slow" in said
    assert read(project / FOUND) == {SLOW}
    assert read(project / MARKED) == {NEAR}


@pytest.mark.slow
def test_a_report_lists_long_cases_marks_none_and_lets_the_run_pass(project: Path) -> None:
    done = run(project, "--pace=check", "--pace=report")  # as `make test` is called by `.ci/run`
    assert done.returncode == 0
    said = done.stdout.partition("more than a tenth of a second")[2]
    assert f"listed  {SLOW}" in said
    assert f"listed  {NEAR}" in said
    assert not (project / FOUND).exists()
    assert not (project / MARKED).exists()


@pytest.mark.slow
def test_a_case_is_given_the_time_that_a_slower_machine_takes(project: Path) -> None:
    (project / "conftest.py").write_text(MACHINE.format(slowness=2.0))
    assert run(project, "--pace=check").returncode == 0
    assert read(project / FOUND) == set()
    assert read(project / MARKED) == {SLOW}


@pytest.mark.slow
def test_a_listed_case_is_slow_and_a_shared_fixture_is_not_held_against_its_first_user(
    project: Path,
) -> None:
    write([SLOW, NEAR], project / MARKED)
    assert run(project, "--pace=check").returncode == 0
    chosen = run(project, "-m", "not slow")
    assert "3 passed, 3 deselected" in chosen.stdout


@pytest.mark.slow
def test_seconds_of_a_case_are_those_of_its_fastest_pass(project: Path) -> None:
    assert run(project, "--pace=measure", "--pace-file=seconds.json").returncode == 0
    seconds = json.loads((project / "seconds.json").read_text())
    assert len(seconds) == 6
    assert seconds["test_some.py::test_quick"] < 0.1
    assert seconds["test_then.py::test_of_another_file"] < 0.1
    assert seconds["test_some.py::test_pays_for_a_fixture_of_all"] < 0.1
    assert seconds[SLOW] >= 0.45


@given(st.floats(0, 100), st.floats(0.1, 10))
def test_a_busy_machine_takes_seconds_off_and_a_fast_one_adds_none(
    seconds: float, slowness: float
) -> None:
    assert calibrated(seconds, slowness) == seconds / max(1.0, slowness)
    assert calibrated(seconds, slowness) <= seconds


def test_slowness_is_positive_and_finite() -> None:
    assert 0.05 < slowness(samples=1) < 100


def test_each_listed_case_is_a_test_of_this_project() -> None:
    gone = []
    for case in sorted(read(ROOT / MARKED)):
        file, *inside = case.partition("[")[0].split("::")
        text = (ROOT / file).read_text("utf-8") if (ROOT / file).exists() else ""
        if inside[0] not in text:  # a class may inherit its tests
            gone.append(case)
    assert not gone, f"take these lines out of {MARKED}: {gone}"


def test_a_list_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read(tmp_path / "none.txt") == frozenset()
    write(["b::c[é d]", "a::b", "a::b"], tmp_path / "new" / "list.txt")
    assert read(tmp_path / "new" / "list.txt") == {"a::b", "b::c[é d]"}
    assert (tmp_path / "new" / "list.txt").read_text("utf-8").splitlines()[0] == "a::b"


@pytest.mark.xdist_group("together")
def test_the_tests_of_a_group_are_given_to_one_worker(request: pytest.FixtureRequest) -> None:
    """A group is told by the end of a test's name, which pytest-xdist must be able to set."""
    if not hasattr(request.config, "workerinput"):
        pytest.skip("one process runs all of them")
    assert request.node.nodeid.endswith("@together")
