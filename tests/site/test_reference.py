"""Every public name stands on one page of the reference, and nothing else does."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
API = ROOT / "docs" / "reference" / "api"
OURS = "notebook_probe"
PUBLIC = [
    OURS,
    *(
        f"{OURS}.{name}"
        for name in (
            "compare",
            "experiment",
            "experiment.learning_rates",
            "experiment.optimizers",
            "experiment.sweep",
            "experiment.validation",
            "explorer",
            "figures",
            "graph",
            "quantities",
            "schedules",
            "summary",
            "taiyi",
            "testing",
            "train",
            "train.callbacks",
        )
    ),
]
"""The modules whose names are public, all of them."""

WITH_LIBRARIES = (
    f"{OURS}.train.frameworks.",
    f"{OURS}.experiment.sweep.optuna",
    f"{OURS}.experiment.sweep.ray",
)
"""What is imported only where the library is that it is for."""

STANDING = [
    name
    for page in sorted(API.glob("*.md"))
    for name in re.findall(r"^::: (\S+)$", page.read_text("utf-8"), flags=re.MULTILINE)
]
BLOCK = re.compile(r"^ *```python\n(.*?)^ *```", flags=re.DOTALL | re.MULTILINE)


def public_names(module: str) -> Iterator[str]:
    """What a module has to say, but modules, which have names of their own."""
    there = import_module(module)
    names = there.__all__
    return (
        f"{module}.{name}" for name in names if not isinstance(getattr(there, name), ModuleType)
    )


def found(name: str) -> Any:
    """What a name means; one in a module that needs a library of its own means itself."""
    if name.startswith(WITH_LIBRARIES):
        return name
    module, _, last = name.rpartition(".")
    there = import_module(module)
    return getattr(there, last) if hasattr(there, last) else import_module(name)


def imported_in(text: str) -> Iterator[str]:
    """The names that the Python of a page imports from the package, but modules."""
    for block in BLOCK.findall(text):
        for node in ast.walk(ast.parse(dedent(block))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(OURS):
                yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def standing() -> frozenset[int]:
    return frozenset(id(found(name)) for name in STANDING)


def test_no_name_stands_there_twice() -> None:
    assert [name for name, times in Counter(STANDING).items() if times > 1] == []


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_stands_on_a_page(module: str) -> None:
    assert [name for name in public_names(module) if id(found(name)) not in standing()] == []


@pytest.mark.parametrize("page", sorted((ROOT / "docs").rglob("*.md")), ids=lambda page: page.stem)
def test_what_a_page_imports_stands_there_too(page: Path) -> None:
    used = {name: found(name) for name in imported_in(page.read_text("utf-8"))}
    objects = {name: one for name, one in used.items() if not isinstance(one, ModuleType | str)}
    assert [name for name, one in objects.items() if id(one) not in standing()] == []
    named = {one for one in used.values() if isinstance(one, str)}
    assert [one for one in named if not any(name.startswith(one) for name in STANDING)] == []
