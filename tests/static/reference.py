"""The pages of the reference, and which public names they have."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.static.offenders import at, read
from tests.static.pages import DOCS, nodes

API = DOCS / "reference" / "api"
OURS = "notebook_probe"
PUBLIC = (
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
)
"""The modules whose names are public, all of them."""

WITH_LIBRARIES = (
    f"{OURS}.train.frameworks.",
    f"{OURS}.experiment.sweep.optuna",
    f"{OURS}.experiment.sweep.ray",
)
"""Modules that can be imported only if the library they are for is installed."""

Documented = Mapping[str, list[str]]
"""Public name -> the places of the reference where it is documented."""


def documented(folder: Path) -> Documented:
    """Return every name that a page of the reference documents, with its places."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for page in sorted(folder.glob("*.md")):
        for match in re.finditer(r"^::: (\S+)$", read(page), flags=re.MULTILINE):
            found[match[1]].append(at(page, read(page), match.start()))
    return found


def public_names(module: str) -> Iterator[str]:
    """Yield a module's public names but modules, which have names of their own."""
    there = import_module(module)
    for name in there.__all__:
        if not isinstance(getattr(there, name), ModuleType):
            yield f"{module}.{name}"


def meant(name: str) -> Any:
    """Return what a name means; the name itself where importing needs another library."""
    if name.startswith(WITH_LIBRARIES):
        return name
    module, _, last = name.rpartition(".")
    there = import_module(module)
    return getattr(there, last) if hasattr(there, last) else import_module(name)


def documented_twice(names: Documented) -> Iterator[str]:
    for name, places in names.items():
        if len(places) > 1:
            yield f"{', '.join(places)}: {name} is documented {len(places)} times"


def undocumented(modules: tuple[str, ...], names: Documented) -> Iterator[str]:
    """Find public names that are on no page of the reference."""
    known = meanings(tuple(names))
    for module in modules:
        file = Path(import_module(module).__file__ or "")
        for name in public_names(module):
            if id(meant(name)) not in known:
                yield f"{at(file)}: {name} is on no page of docs/reference/api"


@cache
def meanings(names: tuple[str, ...]) -> frozenset[int]:
    return frozenset(id(meant(name)) for name in names)


def imported_and_undocumented(page: Path, names: Documented) -> Iterator[str]:
    """Find what a page's Python imports from the package and the reference does not have."""
    for place, node in nodes(page):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(OURS):
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                if not is_documented(name, meant(name), names):
                    yield f"{place}: {name} is on no page of docs/reference/api"


def is_documented(name: str, found: Any, names: Documented) -> bool:
    if isinstance(found, ModuleType):
        return True
    if isinstance(found, str):
        return any(one.startswith(found) for one in names)
    return id(found) in meanings(tuple(names))
