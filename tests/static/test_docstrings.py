"""Docstrings say in plain words what things are and do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.static.docstrings import docstrings, odd_entries, odd_openings, odd_turns
from tests.static.offenders import ROOT, read, refuse

pytestmark = pytest.mark.static

SOURCES = tuple(sorted((ROOT / "notebook_probe").rglob("*.py")))
PLAIN = '''"""Settings of a loss."""

LIMIT = 3
"""Largest number of ``what it lies in``."""

def limit():
    """Return the limit.

    >>> whoever = 1
    """
'''


def found_in(check: Callable[[Path, str], Iterator[str]]) -> Iterator[str]:
    for path in SOURCES:
        yield from check(path, read(path))


def test_a_docstring_begins_with_a_verb_or_a_noun() -> None:
    assert len(SOURCES) > 900
    refuse(found_in(odd_openings), "a docstring begins with a verb or a plain noun phrase")


def test_the_description_of_a_parameter_begins_with_a_noun() -> None:
    refuse(found_in(odd_entries), "a description begins with the noun that it describes")


def test_a_docstring_is_written_in_plain_words() -> None:
    refuse(found_in(odd_turns), "a docstring is written in plain words; see tools/language.toml")


def test_plain_docstrings_pass() -> None:
    assert len([*docstrings(PLAIN)]) == 3
    assert [*odd_openings(Path("a.py"), PLAIN), *odd_turns(Path("a.py"), PLAIN)] == []


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("Settings of", "What is made small by", "a.py:1: 'What is made small by a loss.'; name"),
        ("Largest", "Of the largest", "a.py:4: 'Of the largest number"),
        ("Return the", "Whether there is a", "a.py:7: 'Whether there is a limit.'; 'Return whe"),
    ],
)
def test_an_odd_opening_is_found(before: str, after: str, expected: str) -> None:
    [found] = odd_openings(Path("a.py"), PLAIN.replace(before, after))
    assert found.startswith(expected)


def test_an_odd_turn_is_found_in_its_line() -> None:
    odd = PLAIN.replace(">>> whoever = 1", "It is made\n    anew by whoever asks.")
    assert [*odd_turns(Path("a.py"), odd)] == [
        "a.py:10: 'anew'; write: again",
        "a.py:10: 'whoever'; write: name the actor",
    ]


@pytest.mark.parametrize(
    ("text", "advice"),
    [
        ("Of the first update.", "begin with the noun: 'Learning rate of the first update.'"),
        ("How many there are.", "'Number of ...', 'Share of ...'"),
        ("As for `align`.", "'Same as in `align`.', 'Number of ...'"),
    ],
)
def test_an_odd_description_of_a_parameter_is_found_in_its_line(text: str, advice: str) -> None:
    entry = f"Parameters\n    ----------\n    rate : float\n        {text}\n        More of it.\n"
    odd = PLAIN.replace(">>> whoever = 1", entry)
    assert [*odd_entries(Path("a.py"), odd)] == [f"a.py:12: {text!r}; {advice}"]
    assert [*odd_entries(Path("a.py"), odd.replace(text, "Rate of it."))] == []
