"""Print which test files cover a source file: ``python -m tools.tests_of notebook_probe/axis.py``.

Tests are in the folder of the code that they test and are named after a behavior, so a path finds
the folder, not the file. Listed are tests that have the file's name, tests that import the file or
a public name of it, directly or by a module they share, and how many others are in its folder.
"""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path

from tools.affected import PACKAGE, ROOT, changed_module, module_in, modules, named, text_of

__all__ = ["covering", "importing", "named_after", "room_of"]


def room_of(file: str) -> str:
    """Return the folder of tests that mirrors a file's folder, or the nearest above it."""
    folder = ROOT / "tests" / Path(file).relative_to(PACKAGE).parent
    while not folder.is_dir():
        folder = folder.parent
    return folder.relative_to(ROOT).as_posix()


@cache
def test_files() -> dict[str, str]:
    """Return the module of every test file by its path."""
    return {
        path.relative_to(ROOT).as_posix(): module
        for module, path in modules().items()
        if re.fullmatch(r"tests\.(?:.*\.)?test_\w+", module)
    }


@cache
def imported_by(test: str) -> frozenset[str]:
    """Return the modules that a test imports, and those that modules of tests import for it."""
    seen, waiting = set[str](), [test]
    while waiting:
        module = waiting.pop()
        words = set(re.findall(r"\w+", text_of(module)))
        new = named(module) - seen
        for package in new:
            new |= {source for name, source in offered(package) if name in words}
        seen |= new
        waiting += [name for name in new if name.startswith("tests.")]
    return frozenset(seen)


@cache
def offered(package: str) -> frozenset[tuple[str, str]]:
    """Return the names that a package offers from its modules, each with the module."""
    if modules()[package].name != "__init__.py":
        return frozenset()
    return frozenset(
        (alias.name, module_in(f"{node.module}.{alias.name}"))
        for node in ast.walk(ast.parse(text_of(package)))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    )


def named_after(file: str) -> list[str]:
    """Return the tests of a file's folder whose names begin with the name of the file."""
    path = Path(file)
    stem = path.parent.name if path.stem == "__init__" else path.stem
    pattern = re.compile(rf"{room_of(file)}/test_{stem}(?:_\w+)?\.py")
    return [one for one in test_files() if pattern.fullmatch(one)]


def importing(file: str) -> list[str]:
    """Return the tests that import a file."""
    module = changed_module(file)
    return [path for path, test in test_files().items() if module in imported_by(test)]


def covering(file: str) -> list[str]:
    """Return the tests that are named after a file or import it, tests of its folder first."""
    found = dict.fromkeys([*named_after(file), *importing(file)])
    return sorted(found, key=lambda test: not test.startswith(f"{room_of(file)}/"))


def main(files: list[str]) -> None:
    """Print the tests of each file."""
    for file in files:
        if not (ROOT / file).is_file() or not changed_module(file).startswith(PACKAGE):
            sys.exit(f"{file}: no source file; allowed: a path below {PACKAGE}/")
        print(f"{file}: {room_of(file)}")
        for test in covering(file):
            print(f"  {test} ({'by its name' if test in named_after(file) else 'by import'})")
        others = {one for one in test_files() if one.startswith(f"{room_of(file)}/")}
        print(f"  and {len(others - {*covering(file)})} other files of {room_of(file)}")


if __name__ == "__main__":
    main(sys.argv[1:])
