"""Each environment declares what the files that run in it import, also what they import late."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.static.offenders import ROOT, at, read, refuse
from tools.affected import module_in, modules
from tools.group_env import GROUPS, KERNELS, PROJECT, expanded, name_of, pins_of, requirements

pytestmark = pytest.mark.static

KNOWN = {"notebook_probe", "tests", "tools", "benchmarks", "__main__", *sys.stdlib_module_names}
# A module, and the requirement that brings it: one of another name, or one that depends on it.
BROUGHT_BY = {
    "IPython": "ipykernel",
    "PIL": "matplotlib",
    "_pytest": "pytest",
    "comm": "ipykernel",
    "ignite": "pytorch-ignite",
    "jupyter_client": "ipykernel",
    "nbformat": "jupyterlab",
    "pandas": "xarray",
    "pytorch_lightning": "lightning",
    "safetensors": "transformers",
    "sklearn": "scikit-learn",
    "traitlets": "ipywidgets",
    "xdist": "pytest-xdist",
    "yaml": "pyyaml",
    "zmq": "ipykernel",
}
# Imported only by tests of what happens with a module that is missing or in the way.
INVENTED = {"a_script_of_mine", "nothing_like_it"}
# Loggers and trainers whose requirements contradict those of the other libraries; their tests skip
# without them.
BY_HAND = {"axolotl", "fastai", "mlflow", "trackio"}
ELSEWHERE = {
    "libraries": ("tests/libraries", "notebook_probe/train/frameworks"),
    "graphs": ("tests/graph/of_libraries",),
    "fastai": ("tests/trainers_apart",),
    "axolotl": ("tests/trainers_apart",),
    "frontends": ("tests/frontends",),
    "docs": ("tools/site_pages.py",),
}
SWEEPS = "notebook_probe/experiment/sweep/optuna.py", "notebook_probe/experiment/sweep/ray.py"


def files(*places: str) -> list[Path]:
    """Return the Python files in some folders, or the files named."""
    paths = [ROOT / place for place in places]
    found = (path.rglob("*.py") if path.is_dir() else [path] for path in paths)
    return sorted({file for each in found for file in each})


def imports(text: str, late: bool) -> Iterator[tuple[str, int]]:
    """Yield each name that a file imports, with its line; those in functions only if ``late``."""
    waiting: list[ast.AST] = [ast.parse(text)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from ((f"{node.module}.{alias.name}", node.lineno) for alias in node.names)
        is_late = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or (
            isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        )
        if late or not is_late:
            waiting += ast.iter_child_nodes(node)


def undeclared(
    texts: Mapping[Path, str], declared: Iterable[str], where: str, late: bool = True
) -> Iterator[str]:
    """Find imports of others' modules that no requirement of an environment brings."""
    names = {name_of(requirement) for requirement in declared}
    for path, text in texts.items():
        lines = {(name.partition(".")[0], line) for name, line in imports(text, late)}
        for module, line in sorted(lines, key=lambda found: found[1]):
            brought = name_of(BROUGHT_BY.get(module, module))
            if module not in KNOWN and brought not in names:
                file = at(path).rpartition(":")[0]
                yield f"{file}:{line}: imports {module}; {where} declares no {brought}"


def texts(paths: Iterable[Path]) -> dict[Path, str]:
    return {path: read(path) for path in paths}


def of(*wanted: str) -> list[str]:
    """Return what the package with some extras requires."""
    return [each for requirement in wanted for each in expanded(requirement)]


EVERY_EXTRA = of(f"{PROJECT['name']}[{','.join(PROJECT['optional-dependencies'])}]")


def test_the_package_declares_what_it_imports_in_its_dependencies_and_extras() -> None:
    apart = {*files(ELSEWHERE["libraries"][1], *SWEEPS)}
    package = [path for path in files("notebook_probe") if path not in apart]
    refuse(undeclared(texts(package), EVERY_EXTRA, "pyproject.toml"), "dependencies are declared")


def test_the_environment_of_tests_declares_what_they_and_the_tools_import() -> None:
    apart = {path for places in ELSEWHERE.values() for path in files(*places)}
    here = [path for path in files("tests", "tools") if path not in apart]
    declared = [*of(f"{PROJECT['name']}[demo]"), *requirements("test"), *INVENTED]
    refuse(
        undeclared(texts(here), declared, ".venv"), "the tests' environment has what they import"
    )


@pytest.mark.parametrize("group", ELSEWHERE)
def test_an_environment_declares_what_runs_in_it_alone(group: str) -> None:
    here = texts(files(*ELSEWHERE[group], *(SWEEPS if group == "libraries" else ())))
    declared = [*requirements(group), *BY_HAND]
    refuse(undeclared(here, declared, f"the group {group}"), "an environment has what is imported")


def test_the_benchmarks_find_what_they_import() -> None:
    apart = {
        *files("benchmarks/graphs/vision.py", "benchmarks/graphs/language.py", "benchmarks/zoo")
    }
    here = texts(path for path in files("benchmarks") if path not in apart)
    refuse(undeclared(here, requirements("bench"), "the group bench"), "benchmarks can run")
    refuse(undeclared(texts(apart), requirements("graphs"), "the group graphs"), "models are there")


def reached_at_once(*doors: str) -> set[str]:
    """Return the modules of the package that an import of some of them imports at once."""
    found, waiting = set[str](), [*doors]
    while waiting:
        module = waiting.pop()
        if module.startswith("notebook_probe") and module not in found:
            found.add(module)
            names = imports(read(modules()[module]), late=False)
            waiting += [module.rpartition(".")[0], *(module_in(name) for name, _ in names)]
    return found


@pytest.mark.parametrize("group", KERNELS)
def test_another_kernel_has_what_the_panel_imports(group: str) -> None:
    reached = reached_at_once("notebook_probe.explorer.explorer", "notebook_probe.opened")
    assert "notebook_probe.one_thread" in reached, "the walk ends early"
    panel = texts(modules()[module] for module in reached)
    offenders = undeclared(panel, requirements(group), group, late=False)
    refuse(offenders, "the panel opens in another kernel")


def test_what_an_environment_lacks_is_found_with_its_place() -> None:
    planted = {Path("late.py"): "import os\ndef f():\n    from yaml import load\n    import numpy"}
    assert [*undeclared(planted, [], "this one", late=False)] == []
    assert [*undeclared(planted, ["numpy>=2"], "this one")] == [
        "late.py:3: imports yaml; this one declares no pyyaml"
    ]


def test_a_group_with_the_package_requires_what_the_package_and_its_extras_do() -> None:
    assert {*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["lab"]} <= {
        *requirements("bench")
    }
    assert requirements("s3") == GROUPS["s3"]


@pytest.mark.parametrize("group", KERNELS)
def test_another_kernel_is_the_one_that_its_group_names_and_has_no_torch(group: str) -> None:
    named = [name_of(each) for each in requirements(group)]
    assert len(named) == len(set(named))
    assert {*GROUPS[group]} <= {*requirements(group)}
    assert {"torch", "jupyterlab"}.isdisjoint(named)


def test_only_a_group_without_versions_of_its_own_follows_the_pins() -> None:
    unpinned = {group for group in GROUPS if not pins_of(group)}
    assert unpinned == {"axolotl", "s3", *KERNELS}
    assert pins_of("libraries") == ["constraints.txt", "constraints-libraries.txt"]
