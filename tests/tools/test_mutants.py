"""Mutants are small changes in one place; tests run against them in a copy of the project."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools.affected import ROOT
from tools.mutants.edits import mutants

SOURCE = '''\
"""Text."""
from typing import TYPE_CHECKING

__all__ = ["f"]
if TYPE_CHECKING:
    LIMIT = 1


@decorated(1)
def f(a: "list[1]", b: int = 2) -> bool:
    """Text."""
    é = "ä" if not a else None
    a.x = é
    log(a)
    return a < b and b is not a
'''


def changes(source: str) -> list[tuple[int, str]]:
    """The line of each mutant, and what is written there."""
    return [(one.line, one.changed.splitlines()[one.line - 1].strip()) for one in mutants(source)]


def test_comparisons_constants_operators_and_statements_change_one_at_a_time() -> None:
    assert changes(SOURCE) == [
        (10, 'def f(a: "list[1]", b: int = (3)) -> bool:'),
        (12, 'é = "ä" if (a) else None'),
        (13, "pass"),
        (14, "pass"),
        (15, "return None"),
        (15, "return (a < b or b is not a)"),
        (15, "return (a <= b) and b is not a"),
        (15, "return a < b and (b is a)"),
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x + 1", ["(x - 1)", "x + (2)"]),
        ("x / y", ["(x * y)"]),
        ("x < y <= z", ["(x <= y <= z)", "(x < y < z)"]),
        ("x not in y", ["(x in y)"]),
        ("True", ["(False)"]),
        ("f'{x + 1}'", []),
    ],
)
def test_an_expression_becomes(before: str, after: list[str]) -> None:
    assert changes(f"y = {before}") == [(1, f"y = {one}") for one in after]


def test_a_change_over_several_lines_leaves_the_others_as_they_are() -> None:
    source = "y = (\n    a  # first\n    and b\n)\nz = 'ü'; y = a and b\n"
    assert [one.changed for one in mutants(source)] == [
        "y = (\n    (a or b)\n)\nz = 'ü'; y = a and b\n",
        "y = (\n    a  # first\n    and b\n)\nz = 'ü'; y = (a or b)\n",
    ]


def test_every_mutant_of_the_package_is_python_and_differs() -> None:
    files = sorted((ROOT / "notebook_probe" / "schedules").glob("*.py"))
    found = [one for file in files for one in mutants(file.read_text("utf-8"))]
    assert len(found) > 100
    for one in found:
        compile(one.changed, "mutant", "exec")
        assert one.changed != one.original
        assert one.diff("file.py").startswith("--- file.py\n+++ file.py\n@@ -")


TRIAL = """
import sys
from pathlib import Path
from tools.mutants.trial import Copy
copy, log = Copy(Path(sys.argv[1])), Path(sys.argv[1]) / "log"
print(copy.passes(["test_code.py"], 60, log))
for change in ("LESS = 2", "LESS = 1", "while True: pass"):
    copy.change("code_of_it.py", change)
    print(copy.passes(["test_code.py"], 60 if "LESS" in change else 1, log))
"""


@pytest.mark.slow
def test_a_trial_sees_the_change_in_its_own_and_in_other_processes_and_ends_in_time(
    tmp_path: Path,
) -> None:
    (tmp_path / "code_of_it.py").write_text("LESS = 1")
    (tmp_path / "test_code.py").write_text(
        "import subprocess, sys\n"
        "from code_of_it import LESS\n"
        "def test_it():\n"
        "    code = 'from code_of_it import LESS; sys.exit(LESS - 1)'\n"
        "    done = subprocess.run([sys.executable, '-c', 'import sys;' + code])\n"
        "    assert LESS == 1 and done.returncode == 0\n"
    )
    command = [sys.executable, "-c", TRIAL, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=90)
    assert done.stdout.split() == ["True", "False", "True", "False"]
