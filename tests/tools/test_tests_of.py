"""The test files of a source file: by their names, by what they import, by their folder."""

from __future__ import annotations

import pytest

from tools import tests_of
from tools.tests_of import covering, importing, named_after, room_of


@pytest.mark.parametrize(
    ("file", "room"),
    [
        ("notebook_probe/axis.py", "tests"),
        ("notebook_probe/record/write/disk_use.py", "tests/record/write"),
        ("notebook_probe/record/store/remote/spool.py", "tests/record/store"),
    ],
)
def test_a_room_is_the_mirrored_folder_or_the_nearest_above(file: str, room: str) -> None:
    assert room_of(file) == room


def test_a_test_is_named_after_a_file_or_after_its_behavior_as_well() -> None:
    found = named_after("notebook_probe/record/read/reader.py")
    assert found == ["tests/record/read/test_reader.py"]


@pytest.mark.slow
def test_a_test_imports_a_file_by_its_module_by_a_public_name_and_by_a_module_of_tests() -> None:
    assert "tests/tools/test_quantity_costs.py" in importing(
        "notebook_probe/quantities/define/costs.py"
    )
    assert "tests/schedules/test_times.py" in importing("notebook_probe/schedules/times.py")
    found = importing("notebook_probe/run/watch.py")
    assert "tests/run/test_neutrality.py" in found
    assert "tests/schedules/test_read.py" not in found


@pytest.mark.slow
def test_tests_of_the_room_come_first() -> None:
    found = covering("notebook_probe/schedules/times.py")
    inside = [one.startswith("tests/schedules/") for one in found]
    assert inside == sorted(inside, reverse=True)
    assert True in inside


@pytest.mark.slow
def test_what_is_listed_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    tests_of.main(["notebook_probe/record/read/reader.py"])
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "notebook_probe/record/read/reader.py: tests/record/read"
    assert shown[1] == "  tests/record/read/test_reader.py (by its name)"
    assert shown[-1].endswith("other files of tests/record/read")


def test_what_is_no_source_file_is_refused() -> None:
    with pytest.raises(SystemExit, match="no source file; allowed: a path below notebook_probe/"):
        tests_of.main(["tests/models.py"])
