"""The panel's two texts, checked without a browser."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

import notebook_probe.explorer
from notebook_probe.explorer.assets import css, esm, module_names, module_text

FOLDER = Path(notebook_probe.explorer.__file__).parent / "js"
TOP_LEVEL = re.compile(
    r"^(?:export )?(?:default )?(?:async )?(?:function|const|let|class) (\w+)", re.MULTILINE
)
IMPORT = re.compile(r'^import \{\s*([^}]*?),?\s*\} from "\./(\w+)\.js";$', re.MULTILINE)
EXPORT = re.compile(r"^export (?:async )?(?:function|const|let|class) (\w+)", re.MULTILINE)


def test_every_file_is_part_of_the_panel() -> None:
    assert sorted(module_names()) == sorted(path.stem for path in FOLDER.glob("*.js"))


def test_top_level_names_are_unique_so_that_the_files_can_be_joined() -> None:
    names = Counter(
        name for module in module_names() for name in TOP_LEVEL.findall(module_text(module))
    )
    assert [name for name, count in names.items() if count > 1] == []
    assert len(names) > 100


@pytest.mark.parametrize("module", module_names())
def test_a_module_imports_only_what_the_other_exports_and_what_it_uses(module: str) -> None:
    text = module_text(module)
    assert text.count("\nimport ") + text.startswith("import ") == len(IMPORT.findall(text))
    for imported, other in IMPORT.findall(text):
        exported = EXPORT.findall(module_text(other))
        for name in re.split(r",\s*", imported):
            assert name in exported, f"{module}.js imports {name} from {other}.js"
            assert len(re.findall(rf"\b{name}\b", text)) > 1, f"{module}.js does not use {name}"


@pytest.mark.parametrize("module", module_names())
def test_what_a_module_exports_is_used_elsewhere(module: str) -> None:
    others = "".join(module_text(name) for name in module_names() if name != module)
    unused = [
        name
        for name in EXPORT.findall(module_text(module))
        if not re.search(rf"\b{name}\b", others)
    ]
    assert unused == []


def test_a_module_comes_after_everything_it_imports() -> None:
    order = module_names()
    for module in order:
        for _, other in IMPORT.findall(module_text(module)):
            assert order.index(other) < order.index(module)


def test_the_joined_text_is_one_module_with_one_export() -> None:
    assert re.findall(r"^export .*$", esm(), re.MULTILINE) == ["export default { render };"]
    assert re.findall(r"^import .*$", esm(), re.MULTILINE) == []
    assert esm() is esm()


def test_names_of_a_model_can_never_become_markup_or_code() -> None:
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("):
        assert word not in esm()


def test_nothing_is_fetched_from_anywhere() -> None:
    assert not re.search(r"https?://|fetch\(|XMLHttpRequest|import\(|@import|url\(", esm() + css())


def test_every_style_rule_lies_under_the_panel() -> None:
    outer = re.sub(r"/\*.*?\*/", "", css(), flags=re.DOTALL)
    depth, selectors, start = 0, [], 0
    for at, letter in enumerate(outer):
        if letter == "{":
            if depth == 0:
                selectors.append(outer[start:at].strip())
            depth += 1
        elif letter == "}":
            depth -= 1
            start = at + 1
    for selector in selectors:
        assert selector.startswith("@container") or all(
            ".nbp-panel" in one for one in selector.split(",")
        )
    container = outer[outer.index("@container") :]
    inner = re.findall(r"^\s+([^{}@]+)\{", container, re.MULTILINE)
    assert inner
    assert all(one.strip().startswith(".nbp-panel") for one in inner)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.js")), ids=lambda path: path.stem)
def test_a_file_is_short_enough_to_read_at_once(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert len(lines) <= 250
    assert max(len(line) for line in lines) <= 120
