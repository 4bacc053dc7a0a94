"""Print the tests that a change can affect: ``python -m tools.affected [--since COMMIT]``.

A test file reaches the modules that it names, in imports and in its texts (programs for other
processes, targets of monkeypatch), and whatever these import, anywhere in them. It is affected if
it reaches a module that has changed. Imports go one way, which `make check` enforces, so that most
of the package reaches little. The one import that goes up, from a run to its panel, is followed
only for tests that name the method that makes it.

Of other files a test is affected if it names the file or its folder. Tests directly in ``tests/``
always run; what installs the environment affects every test.
"""

from __future__ import annotations

import argparse
import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "notebook_probe"
FOLDERS = (PACKAGE, "tests", "tools", "benchmarks")
ENVIRONMENT = ("pyproject.toml", "constraints.txt")
DOTTED = re.compile(rf"\b(?:{'|'.join(FOLDERS)})(?:\.\w+)+")
PUBLIC = re.compile(rf"\b(?:nbp|{PACKAGE})\.(\w+)|\bfrom {PACKAGE} import ([^\n(]+|\([^)]+\))")


@cache
def modules() -> dict[str, Path]:
    """Return every module of the repository by its dotted name."""
    return {
        name_of(path): path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))
    }


def name_of(path: Path) -> str:
    """Return the dotted name of a file; a package has the name of its folder."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def module_in(dotted: str) -> str:
    """Return the longest beginning of a dotted name that is a module, or nothing."""
    while dotted and dotted not in modules():
        dotted = dotted.rpartition(".")[0]
    return dotted


@cache
def text_of(module: str) -> str:
    """Return the source of a module."""
    return modules()[module].read_text("utf-8")


@cache
def imported(module: str) -> frozenset[tuple[str, str]]:
    """Return what a module imports, each with the function that does it, or an empty name.

    What only types need is left out, but for packages: there it is what they import on first use.
    """
    is_package = modules()[module].name == "__init__.py"
    found = set[tuple[str, str]]()

    def visit(node: ast.AST, function: str) -> None:
        if isinstance(node, ast.If) and not is_package and "TYPE_CHECKING" in ast.dump(node.test):
            return
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            function = node.name
        if isinstance(node, ast.Import):
            found.update((module_in(alias.name), function) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            found.update((module_in(name), function) for name in names)
        for child in ast.iter_child_nodes(node):
            visit(child, function)

    visit(ast.parse(text_of(module)), "")
    if re.search(r"^ *import xarray\b", text_of(module), re.MULTILINE):
        found.update((name, "") for name in entry_points())
    return frozenset((name, function) for name, function in found if name)


@cache
def entry_points() -> frozenset[str]:
    """Return the modules that xarray loads by name when it looks for a backend."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8")).get("project", {})
    targets = project.get("entry-points", {}).get("xarray.backends", {}).values()
    return frozenset(module_in(target.partition(":")[0]) for target in targets)


@cache
def public() -> dict[str, str]:
    """Return the module behind each name of the package's table of contents."""
    tree = ast.parse(text_of(PACKAGE))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return {
        alias.name: module_in(f"{node.module}.{alias.name}")
        for node in imports
        for alias in node.names
    }


@cache
def named(module: str) -> frozenset[str]:
    """Return the modules that a file names, in its imports or in its texts."""
    text = text_of(module)
    names = {module_in(dotted) for dotted in DOTTED.findall(text)}
    for one, several in PUBLIC.findall(text):
        names.update(public().get(name, "") for name in (one, *re.findall(r"\w+", several)))
    return frozenset(names | {name for name, _ in imported(module)}) - {"", PACKAGE}


@cache
def doors() -> dict[tuple[str, str], frozenset[str]]:
    """Return the imports that go up, from the contracts, with the functions that make them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    lines = [line for one in contracts["contracts"] for line in one.get("ignore_imports", [])]
    edges = [tuple(part.strip() for part in line.split("->")) for line in lines]
    return {
        (source, target): frozenset(f for name, f in imported(source) if name == target and f)
        for source, target in edges
    }


def with_packages(module: str) -> Iterator[str]:
    """Give a module and the packages around it, whose files run when it is imported."""
    while module and module != PACKAGE:
        yield module
        module = module.rpartition(".")[0]


@cache
def reached(start: str) -> frozenset[str]:
    """Return every module that a test can run: what it names, and what these import."""
    tests, waiting = {start, *conftests(start)}, [start, *conftests(start)]
    package = set[str]()
    while waiting:
        for name in named(waiting.pop()):
            if name.startswith(PACKAGE):
                package.update(with_packages(name))
            elif name not in tests:
                tests.add(name)
                waiting.append(name)
    words = frozenset(word for test in tests for word in re.findall(r"\w+", text_of(test)))
    waiting = list(package)
    while waiting:
        source = waiting.pop()
        for target, _ in imported(source):
            door = doors().get((source, target))
            if target == PACKAGE or (door and not door & words):
                continue
            fresh = set(with_packages(target)) - package
            package |= fresh
            waiting += fresh
    return frozenset(tests | package)


def conftests(test: str) -> list[str]:
    """Return the conftest of each folder around a test that has one."""
    folders = [test.rsplit(".", k)[0] for k in range(1, test.count(".") + 1)]
    return [name for folder in folders if (name := f"{folder}.conftest") in modules()]


def test_files() -> list[str]:
    """Return the modules that pytest collects: test files, and the package for its doctests."""
    tests = [name for name in modules() if re.match(r"tests\..*\btest_\w+$", name)]
    return tests + [
        name for name in modules() if name.startswith(PACKAGE) and ">>>" in text_of(name)
    ]


def affected(changed: Iterable[str]) -> list[str]:
    """Return the paths of the tests that a change of these files can affect."""
    files = set(changed)
    if files & set(ENVIRONMENT):
        return ["tests", PACKAGE]
    touched = {changed_module(file) for file in files} - {""}
    texts = [file for file in files if not changed_module(file)]
    return sorted(
        modules()[test].relative_to(ROOT).as_posix()
        for test in test_files()
        if files
        and (
            re.fullmatch(r"tests\.test_\w+", test)
            or touched & reached(test)
            or names_any(texts, test)
        )
    )


def changed_module(file: str) -> str:
    """Return the module of a file, or the package whose data it is; nothing outside of packages."""
    if not file.startswith(FOLDERS):
        return ""
    dotted = file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    return module_in(dotted) if file.endswith(".py") or file.startswith(PACKAGE) else ""


def names_any(files: Iterable[str], test: str) -> bool:
    """Return whether a test names one of these files, or the folder in which it lies."""
    texts = [text_of(name) for name in reached(test) if name.startswith("tests")]
    return any(
        re.search(rf"\b{re.escape(word)}\b", text)
        for file in files
        for word in {Path(file).name, Path(file).parts[0]} - {"tests"}
        for text in texts
    )


def git(*arguments: str) -> list[str]:
    """Return the names that git prints, which are divided by zeros."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.split("\0")[:-1]


def changed_since(commit: str) -> set[str]:
    """Return the files that differ from a commit, those that git does not know yet among them."""
    return {
        *git("diff", "--name-only", "--no-renames", "-z", commit, "--"),
        *git("ls-files", "--others", "--exclude-standard", "-z"),
    }


def main() -> int:
    """Print a test file a line, and to stderr how many there are."""
    parser = argparse.ArgumentParser(prog="python -m tools.affected", description=__doc__)
    parser.add_argument("--since", default="HEAD", help="a commit; HEAD, the last one, by default")
    since = parser.parse_args().since
    tests = affected(changed_since(since))
    print("\n".join(tests))
    print(f"{len(tests)} test files can be affected by what changed since {since}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
