"""The panel's JavaScript and styles: how modules hang together, and what none of them may do."""

from __future__ import annotations

import pytest

from tests.static import scripts
from tests.static.offenders import refuse
from tests.static.scripts import FETCHING, MARKUP, files, modules, occurring

pytestmark = pytest.mark.static

JS, CSS = "**/*.js", "explorer/css/**/*.css"
PARTS = ("explorer/js/**/*.js", "explorer/runs_table/js/*.js")


def test_a_module_imports_only_what_the_other_exports_and_what_it_uses() -> None:
    assert len(modules()) > 150
    refuse(scripts.wrong_imports(modules()), "a module imports what is exported, and uses it")


def test_what_a_module_exports_is_imported_elsewhere() -> None:
    refuse(scripts.wrong_exports(modules()), "what is exported is imported elsewhere")


def test_every_file_is_part_of_the_panel_or_of_the_table_of_runs() -> None:
    there = {path: text for part in PARTS for path, text in files(part).items()}
    refuse(scripts.unreachable(modules(), there), "every file is imported")


def test_no_folder_has_more_files_than_one_can_survey() -> None:
    assert len(files(JS)) > 150
    refuse(scripts.crowded(files(JS)), "a folder of scripts can be surveyed")


def test_a_file_is_short_enough_to_read_at_once() -> None:
    refuse(scripts.long(files(JS)), "a script can be read at once")


def test_names_of_a_model_can_never_become_markup_or_code() -> None:
    there = files("explorer/**/*.js")
    refuse(occurring(MARKUP, there, "allowed: textContent, replaceChildren"), "no markup")


def test_nothing_is_fetched_from_anywhere() -> None:
    there = {**files("explorer/**/*.js"), **files("explorer/**/*.css")}
    assert any("blobUrl = URL.createObjectURL(" in text for text in there.values())
    refuse(occurring(FETCHING, there, "allowed: what the kernel sends"), "nothing is fetched")


def test_a_class_is_styled_in_one_place() -> None:
    """Else two parts with the same name style each other; widths alone come on top."""
    sheets = {path: text for path, text in files(CSS).items() if not path.endswith("/widths.css")}
    assert sum(text.count("& .nbp-") for text in sheets.values()) > 100
    refuse(scripts.styled_twice(sheets), "a class is styled in one sheet")


def test_every_style_rule_is_limited_to_the_panel() -> None:
    assert any("@container" in text for text in files(CSS).values())
    refuse(scripts.outside_the_panel(files(CSS)), "every style rule is limited to the panel")
