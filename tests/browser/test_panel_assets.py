"""The panel's two texts, and how one of them is joined from many files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route

import notebook_probe.explorer
from notebook_probe.explorer.assets import esm, joined, sources

FOLDER = Path(notebook_probe.explorer.__file__).parent / "js"
FILES = {path.relative_to(FOLDER).as_posix(): path for path in sorted(FOLDER.rglob("*.js"))}
MODULES = sources(FOLDER)
IMPORT = re.compile(r'^import \{\s*([^}]*?),?\s*\} from "(\.[\w./]+)\.js";$', re.MULTILINE)
ORIGIN = "http://localhost:9/"  # answered by the test itself


def imports(module: str) -> list[tuple[list[str], str]]:
    """What a file of the panel imports: names, and the module they come from."""
    return [
        (re.split(r",\s*", names), beside(module, path))
        for names, path in IMPORT.findall(MODULES[module])
    ]


def beside(module: str, path: str) -> str:
    found = (FOLDER / module).parent.joinpath(path).resolve()
    return found.relative_to(FOLDER.resolve()).as_posix()


def folder_of(folder: Path, **modules: str) -> Path:
    """A folder of modules; ``__`` in a name stands for a slash."""
    for name, source in modules.items():
        path = folder / f"{name.replace('__', '/')}.js"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    return folder


def rendered(page: Page, folder: Path) -> Any:
    """What ``render()`` of the joined text gives in a browser."""
    return page.evaluate(
        """async (source) => {
          const url = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
          return (await import(url)).default.render();
        }""",
        joined(folder),
    )


def test_a_module_comes_after_everything_it_imports() -> None:
    order = list(MODULES)
    for module in order:
        for _, other in imports(module):
            assert order.index(other) < order.index(module)


def test_equal_names_in_two_modules_stay_their_own(tmp_path: Path, page: Page) -> None:
    folder = folder_of(
        tmp_path,
        heat__paint="const SIZE = 2;\nexport function paint() {\n  return `heat ${SIZE}`;\n}\n",
        lines__paint="const SIZE = 3;\nexport const paint = () => `lines ${SIZE}`;\n",
        panel="""import { paint } from "./heat/paint.js";
import {
  paint as paintLines,
} from "./lines/paint.js";

const SIZE = 4;
const render = () => [paint(), paintLines(), SIZE];

export default { render };
""",
    )
    assert rendered(page, folder) == ["heat 2", "lines 3", 4]


def test_modules_of_other_folders_and_of_the_one_above_are_found(
    tmp_path: Path, page: Page
) -> None:
    folder = folder_of(
        tmp_path,
        units="export class Unit {\n  name = 'nat';\n}\n",
        plots__scale='import { Unit } from "../units.js";\nexport const unit = new Unit();\n',
        plots__heat__map="""import { Unit } from "../../units.js";
import { unit } from "../scale.js";
export async function isShared() {
  return unit instanceof Unit && unit.name;
}
""",
        panel="""import { isShared } from "./plots/heat/map.js";
const render = () => isShared();
export default { render };
""",
    )
    assert rendered(page, folder) == "nat"
    assert list(sources(folder)) == ["units", "plots/scale", "plots/heat/map", "panel"]


def test_paths_that_differ_only_in_slashes_become_different_constants(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path,
        heat__map="export const a = 1;\n",
        heat_map="export const a = 2;\n",
        panel="""import { a } from "./heat/map.js";
import { a as b } from "./heat_map.js";
export default { render: () => [a, b] };
""",
    )
    constants = re.findall(r"^const (\$\S+) =", joined(folder), re.MULTILINE)
    assert len(set(constants)) == len(constants) == 2


def test_an_import_of_a_missing_file_names_the_file_and_who_asks(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path,
        plots__heat='import { scale } from "../scale.js";\nexport const heat = scale;\n',
        plots__scale="export const scale = 1;\n",
        panel='import { heat } from "./plots/heat.js";\nexport default { render: heat };\n',
    )
    with pytest.raises(ImportError, match=r"there is no scale\.js in .*plots/heat\.js imports it"):
        joined(folder)


def test_a_folder_without_a_panel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ImportError, match=r"there is no panel\.js"):
        joined(tmp_path)


@pytest.mark.parametrize("wanted", ["hidden", "scal", "scale, hidden as shown"])
def test_an_import_of_a_name_that_is_not_exported_says_what_is(tmp_path: Path, wanted: str) -> None:
    folder = folder_of(
        tmp_path,
        plots__scale="const hidden = 1;\nexport const scale = hidden;\nexport class Axis {}\n",
        panel=f'import {{ {wanted} }} from "./plots/scale.js";\nexport default {{ render: 1 }};\n',
    )
    missing = "scal" if wanted == "scal" else "hidden"
    allowed = rf"panel\.js imports {missing} from plots/scale\.js, which exports scale, Axis$"
    with pytest.raises(ImportError, match=allowed):
        joined(folder)


def test_a_circle_of_imports_is_refused_and_shown_whole(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path,
        plots__a='import { b } from "../tree/b.js";\nexport const a = () => b;\n',
        tree__b='import { a } from "../plots/a.js";\nexport const b = () => a;\n',
        panel='import { a } from "./plots/a.js";\nexport default { render: a };\n',
    )
    with pytest.raises(ImportError, match=r"panel -> plots/a -> tree/b -> plots/a$"):
        joined(folder)


def test_a_browser_can_load_the_files_as_they_are(page: Page) -> None:
    served: list[str] = []

    def serve(route: Route) -> None:
        name = route.request.url.removeprefix(ORIGIN)
        if name not in FILES:
            return route.fulfill(content_type="text/html", body="")
        served.append(name)
        return route.fulfill(content_type="text/javascript", body=FILES[name].read_bytes())

    page.route(f"{ORIGIN}**", serve)
    page.goto(ORIGIN)
    kind = page.evaluate("async () => typeof (await import('/panel.js')).default.render")
    assert kind == "function"
    assert sorted(served) == sorted(FILES)


def test_the_joined_text_says_where_each_part_comes_from() -> None:
    assert re.findall(r"^// js/(\S+)$", esm(), re.MULTILINE) == [f"{name}.js" for name in MODULES]


def test_the_joined_text_has_the_code_without_its_documentation(tmp_path: Path) -> None:
    source = """/** A panel. */

/**
 * @param {string} name
 */
function render(name) {
  /** @type {string[]} */
  const names = [/** @type {string} */ (name)]; // stays
  return names;
}
export default { render };
"""
    (tmp_path / "panel.js").write_text(source)
    code = [line for line in joined(tmp_path).splitlines() if line]
    assert code == [
        "// js/panel.js",
        "function render(name) {",
        "  const names = [/** @type {string} */ (name)]; // stays",
        "  return names;",
        "}",
        "export default { render };",
    ]


def test_the_joined_text_is_one_module_with_one_export() -> None:
    assert re.findall(r"^export .*$", esm(), re.MULTILINE) == ["export default { render };"]
    assert re.findall(r"^import .*$", esm(), re.MULTILINE) == []
    assert esm() is esm()


def test_the_table_of_runs_is_joined_with_what_it_shares_with_the_panel() -> None:
    explorer = FOLDER.parent
    found = sources(explorer, "runs_table/js/table")
    own = {path.relative_to(explorer).as_posix() for path in explorer.glob("runs_table/js/*.js")}
    assert own <= {f"{name}.js" for name in found}
    assert "js/dom" in found
    assert joined(explorer, "runs_table/js/table").endswith("export default { render };\n")
