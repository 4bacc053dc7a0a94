"""Errors, help, labels and comments are in plain English: no turn of tools/language.toml."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.static.language import Section, Turn, section
from tests.static.offenders import ROOT, read, refuse
from tests.static.strings import comments_of, strings_of, strings_of_javascript

pytestmark = pytest.mark.static

Find = Callable[[str], Iterator[tuple[int, str]]]
FOUND: dict[str, tuple[str, str, Find]] = {
    "errors, help and sentences": ("texts", "*.py", strings_of),
    "comments": ("docstrings", "*.py", comments_of),
    "labels of the panel": ("texts", "*.js", strings_of_javascript),
}
"""Section of the list, files, and what to search in them."""


def offenders(file: Path, text: str, find: Find, listed: Section) -> Iterator[str]:
    """Report each banned turn of a file: where, what, and what to write instead."""
    turns = [turn for turn in listed.turns if not turn.opens]
    for line, said in find(text):
        for turn in turns:
            for found in turn.pattern.finditer(said):
                yield f"{file}:{line}: {found[0]!r}; write: {turn.advice}"


@pytest.mark.parametrize("kind", FOUND)
def test_the_text_of_the_code_is_in_plain_english(kind: str) -> None:
    name, pattern, find = FOUND[kind]
    files = sorted((ROOT / "notebook_probe").rglob(pattern))
    assert len(files) > 100
    listed = section(name)
    refuse(
        (
            one
            for file in files
            for one in offenders(file.relative_to(ROOT), read(file), find, listed)
        ),
        f"{kind} are in plain English (tools/language.toml)",
    )


LISTED = Section((Turn.of("goes on", "continues"),), {})


@pytest.mark.parametrize(
    ("find", "text"),
    [
        (strings_of, 'x = 1\nraise ValueError(f"the training of {x} goes on here")\n'),
        (comments_of, "x = 1\ny = 2  # the training goes on\n"),
        (strings_of_javascript, "// goes on\nlabel(`the run of ${x} goes on here`)\n"),
    ],
)
def test_a_banned_turn_is_found_in_its_line(find: Find, text: str) -> None:
    found = [*offenders(Path("a"), text, find, LISTED)]
    assert found == ["a:2: 'goes on'; write: continues"]


@pytest.mark.parametrize(
    ("find", "text"),
    [
        (strings_of, '"""The training goes on."""\nkey = "goes on"\n'),
        (comments_of, 'x = "# the training goes on"\n'),
        (strings_of_javascript, 'element("goes on")  // the run goes on\n'),
    ],
)
def test_docstrings_keys_and_other_kinds_of_text_are_no_offenders(find: Find, text: str) -> None:
    assert [*offenders(Path("a"), text, find, LISTED)] == []
