"""Find words and turns in prose that tools/language.toml lists, each with what to write instead."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.static.notebooks import notebooks
from tests.static.offenders import ROOT, at, read
from tests.static.pages import pages

__all__ = [
    "LIST",
    "Section",
    "Turn",
    "banned",
    "prose",
    "section",
    "texts_of_notebook",
    "turns_in",
    "written",
]

LIST = ROOT / "tools" / "language.toml"
GENERATED = ("docs/quantities.md", "docs/quantities/")
"""Pages made of docstrings, which the section on docstrings covers."""

NOT_PROSE = (
    re.compile(r"<!--.*?-->", re.DOTALL),
    re.compile(r"^( *)(```+)[^\n]*\n.*?^\1\2$", re.DOTALL | re.MULTILINE),
    re.compile(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", re.DOTALL),
    re.compile(r"(?<=\])\([^()\s]*\)"),  # the address of a link
    re.compile(r"<[^>\n]+>"),
)
SENTENCE = re.compile(
    r"(?:^[ \t]*(?:(?:[-*>|]|\d+\.)[ \t]+)?|(?<=[.!?:;])\s+|(?<=\| ))\**"
    r"([A-Z](?:(?!\n\n)[^.!?|])*[.!?:]?)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Turn:
    """A turn that is not written, where to look for it, and what to write instead."""

    pattern: re.Pattern[str]
    advice: str
    opens: bool
    """Whether only the first words of a sentence that is no question count."""

    @classmethod
    def of(cls, words: str, advice: str, opens: bool = False) -> Turn:
        """Compile an entry of the list; spaces in it match the end of a line, too."""
        spaced = words.replace(" ", r"\s+")
        flags = re.NOFLAG if opens else re.IGNORECASE
        return cls(re.compile(rf"(?<![\w-])(?:{spaced})(?![\w-])", flags), advice, opens)


@dataclass(frozen=True)
class Section:
    """A section of the list: turns, and parts of texts in which one may stand."""

    turns: Sequence[Turn]
    allowed: dict[str, list[str]]


@cache
def section(name: str) -> Section:
    """Read a section of tools/language.toml."""
    entries = tomllib.loads(read(LIST))[name]
    turns = [Turn.of(words, advice) for words, advice in entries["turns"].items()]
    turns += [Turn.of(words, advice, True) for words, advice in entries["openings"].items()]
    return Section(turns, entries.get("allowed", {}))


def prose(text: str) -> str:
    """Return a text with everything blank that is no prose, so that positions stay.

    Examples
    --------
    >>> prose("See `a b` in [this](page.md).")
    'See `xxx` in [this]         .'
    """
    for pattern in NOT_PROSE:
        text = pattern.sub(_blank, text)
    return text


def _blank(found: re.Match[str]) -> str:
    code = found[0].startswith("`") and "\n" not in found[0]
    return f"`{'x' * (len(found[0]) - 2)}`" if code else re.sub(r"[^\n]", " ", found[0])


def turns_in(text: str, turns: Sequence[Turn]) -> Iterator[tuple[int, str, str]]:
    """Find banned turns in a text: position, what is written, and what to write instead."""
    shown = prose(text)
    found = [
        (match.start(), match[0], turn.advice)
        for turn in turns
        if not turn.opens
        for match in turn.pattern.finditer(shown)
    ]
    for sentence in SENTENCE.finditer(shown):
        if not sentence[1].endswith("?"):
            found += [
                (sentence.start(1), match[0], turn.advice)
                for turn in turns
                if turn.opens and (match := turn.pattern.match(sentence[1]))
            ]
    for position, words, advice in sorted(found):
        yield position, " ".join(words.split()), advice


def banned(place: Path, text: str, listed: Section) -> Iterator[str]:
    """Report each banned turn of a text as a line: where, what, and what to write instead."""
    allowed = listed.allowed.get(at(place).rpartition(":")[0], [])
    for one in allowed:
        text = text.replace(one, "x" * len(one))
    for position, words, advice in turns_in(text, listed.turns):
        yield f"{at(place, text, position)}: {words!r}; write: {advice}"


def written() -> Iterator[tuple[Path, str]]:
    """Yield the texts that people read: pages, and the text cells of notebooks.

    A notebook is a text of its file's length, so that a position in it is a line of the file.
    """
    for page in pages():
        if not at(page).startswith(GENERATED):
            yield page, read(page)
    for path in notebooks():
        yield path, texts_of_notebook(read(path))


def texts_of_notebook(notebook: str) -> str:
    """Return a notebook with the lines of its text cells in their places, all others blank."""
    kept, inside, markdown = [], False, False
    for line in notebook.splitlines():
        stripped = line.strip()
        if stripped.startswith('"cell_type"'):
            markdown = "markdown" in stripped
        if stripped in {"]", "],"}:
            inside = False
        kept.append(_text_of(stripped) if inside and markdown else "")
        if stripped == '"source": [':
            inside = True
    return "\n".join(kept)


def _text_of(line: str) -> str:
    return str(json.loads(line.removesuffix(","))).rstrip("\n")
