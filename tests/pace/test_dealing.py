"""Assignment of tests to workers."""

from __future__ import annotations

import pytest

from tests.pace.dealing import ByFile


@pytest.mark.parametrize(
    ("case", "scope"),
    [
        ("tests/run/test_a.py::test_b", "tests/run/test_a.py"),
        ("tests/run/test_a.py::TestC::test_b[x]", "tests/run/test_a.py"),
        ("tests/run/test_a.py::test_b[a@b]", "tests/run/test_a.py"),
        ("tests/run/test_a.py::test_b[a::b]", "tests/run/test_a.py"),
        ("tests/run/test_a.py::test_b@group", "group"),
        ("tests/run/test_a.py::test_b[a@b]@group", "group"),
        ("notebook_probe/errors.py::notebook_probe.errors.near", "notebook_probe/errors.py"),
    ],
)
def test_a_file_is_for_one_worker_and_so_is_a_marked_group(case: str, scope: str) -> None:
    assert object.__new__(ByFile)._split_scope(case) == scope
