"""A call with many arguments names them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.static.offenders import ROOT, refuse

pytestmark = pytest.mark.static

MOST_POSITIONAL = 6

PASSES_ON = {"Table", "_add", "attempt", "attempt_in_hook", "partial"}
"""Functions that take any number of positional arguments: columns, probes, those of a function."""


def long_calls(path: Path, text: str) -> Iterator[str]:
    """Find calls with more positional arguments than a reader can tell apart."""
    for call in ast.walk(ast.parse(text)):
        if not isinstance(call, ast.Call):
            continue
        name = ast.unparse(call.func).rpartition(".")[2]
        n = sum(map(_n_values, call.args))
        if n > MOST_POSITIONAL and name not in PASSES_ON:
            yield f"{path}:{call.lineno}: {name} has {n} arguments by position; name them"


def _n_values(argument: ast.expr) -> int:
    """Return the number of arguments that are written out; those of a variable count as one."""
    if isinstance(argument, ast.Starred) and isinstance(argument.value, ast.Tuple):
        return len(argument.value.elts)
    return 1


def test_arguments_are_named_where_there_are_many() -> None:
    paths = sorted((ROOT / "notebook_probe").rglob("*.py"))
    found = (
        line
        for path in paths
        for line in long_calls(path.relative_to(ROOT), path.read_text(encoding="utf-8"))
    )
    refuse(found, "write name=value")


def test_a_long_call_is_found() -> None:
    text = "f(1, 2, 3, 4, 5, 6)\ng(*(1, 2, 3), *(4, 5, 6, 7))\npartial(1, 2, 3, 4, 5, 6, 7)\n"
    assert [*long_calls(Path("a.py"), text)] == ["a.py:2: g has 7 arguments by position; name them"]
