"""Each check of scripts and styles finds an offender that is planted, with its line."""

from __future__ import annotations

import pytest

from tests.static import scripts
from tests.static.offenders import refuse

pytestmark = pytest.mark.static

PANEL = "notebook_probe/explorer/js/panel.js"
OTHER = "notebook_probe/explorer/js/other.js"
SOUND = {
    OTHER: "export const a = 1;\nexport class B {}\n",
    PANEL: 'import { a, B as C } from "./other.js";\nf(a, C);\nexport default { render };\n',
}


def planted(module: str, before: str, after: str) -> dict[str, str]:
    assert before in SOUND[module]
    return {**SOUND, module: SOUND[module].replace(before, after)}


def test_sound_modules_pass() -> None:
    assert [*scripts.wrong_imports(SOUND), *scripts.wrong_exports(SOUND)] == []


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("{ a, B as C }", "{ gone, B as C }", ":1: gone is not in .*; it exports a, B"),
        ("other.js", "others.js", ":1: a is not in .*js/others.js; no module"),
        ("f(a, C);", "f(a);", ":1: C is imported and not used"),
        ("f(a, C);", 'f(a, C);\nimport * as d from "./d.js";', ":3: an import of another form"),
        ("f(a, C);", 'f(a, C);\nawait import("d");', ":3: an import of another form"),
    ],
)
def test_a_wrong_import_is_found(before: str, after: str, found: str) -> None:
    with pytest.raises(pytest.fail.Exception, match=found):
        refuse(scripts.wrong_imports(planted(PANEL, before, after)), "imports")


@pytest.mark.parametrize(
    ("module", "before", "after", "found"),
    [
        (OTHER, "export class", "export const c = 2;\nexport class", ":2: no module imports c"),
        (OTHER, "export const a", "export let a", ":1: an export of another form"),
        (PANEL, "{ render }", "{ render, b }", ":3: an export of another form"),
        (PANEL, "export default", "export { a };\nexport default", ":3: an export of another form"),
    ],
)
def test_a_wrong_export_is_found(module: str, before: str, after: str, found: str) -> None:
    with pytest.raises(pytest.fail.Exception, match=found):
        refuse(scripts.wrong_exports(planted(module, before, after)), "exports")


def test_a_file_that_nothing_imports_is_found() -> None:
    assert [*scripts.unreachable(SOUND, {**SOUND, "js/left.js": ""})] == [
        "js/left.js:1: nothing imports it"
    ]


def test_a_folder_of_too_many_files_is_found() -> None:
    there = {f"js/{number}.js": "" for number in range(21)}
    assert [*scripts.crowded(there)] == ["js/: 21 files; at most 20"]


def test_a_long_file_and_a_wide_line_are_found_at_once() -> None:
    assert [*scripts.long({"a.js": "\n" * 251, "b.js": "\n" + "x" * 121})] == [
        "a.js:251: 251 lines; at most 250",
        "b.js:2: 121 characters; at most 120",
    ]


@pytest.mark.parametrize("code", ["x.innerHTML = y", "document.write(y)", "eval(y)"])
def test_markup_is_found(code: str) -> None:
    found = [*scripts.occurring(scripts.MARKUP, {"a.js": f"\n\n{code};"}, "")]
    assert [one[:7] for one in found] == ["a.js:3:"]


@pytest.mark.parametrize(
    "code", ["fetch(u)", "import(u)", "blobUrl = u", "a: url(u)", '"https://u"', "@import u"]
)
def test_what_would_be_fetched_is_found(code: str) -> None:
    sound = 'blobUrl = URL.createObjectURL(u);\nimport(blobUrl);\nimport { a } from "./b.js";\n'
    found = [*scripts.occurring(scripts.FETCHING, {"a.js": sound, "b.js": f"{sound}{code};"}, "")]
    assert [one[:7] for one in found] == ["b.js:4:"]


def test_a_class_in_two_sheets_is_found_with_both_places() -> None:
    sheet = ".nbp-panel {\n  & .nbp-row { gap: 1px; }\n  & .nbp-row { gap: 2px; }\n}\n"
    assert [*scripts.styled_twice({"a.css": sheet})] == []
    assert [*scripts.styled_twice({"a.css": sheet, "b.css": sheet})] == [
        "a.css:2, b.css:2: .nbp-row is styled in 2 sheets"
    ]


@pytest.mark.parametrize(
    ("rule", "line"),
    [
        ("button { gap: 1px; }", 5),
        (".dark .nbp-panel, button { gap: 1px; }", 5),
        (".nbp-panel :is(a, b:not(i)), button { gap: 1px; }", 5),
        ("@container (width < 9px) {\n  .nbp-panel a { top: 0 }\n  button { top: 0; }\n}", 7),
    ],
)
def test_a_rule_outside_the_panel_is_found(rule: str, line: int) -> None:
    sheet = "/* { */\n.nbp-panel {\n  & button { gap: 1px; }\n}\n"
    sound = f"{sheet}@container (width < 9px) {{\n  .nbp-panel button {{ top: 0; }}\n}}\n"
    assert [*scripts.outside_the_panel({"a.css": sound})] == []
    [found] = scripts.outside_the_panel({"a.css": sheet + rule})
    assert found.startswith(f"a.css:{line}: ")
