"""Docstrings of the package, and the check of their first words and turns."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias

from tests.static.offenders import ROOT, at, read

LISTS = ROOT / "tools" / "language.toml"
NO_PROSE = re.compile(r"^ *(?:(?:>>>|\.\.\.) .*|\*{0,2}\w[\w, *]* : .*)$", flags=re.MULTILINE)
SECTIONS = {"Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns"}
LITERAL = re.compile(r"``[^`]*``|`[^`]*`")

Documented: TypeAlias = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
Advice: TypeAlias = Mapping[re.Pattern[str], str]


class Docstring(NamedTuple):
    """Text of a docstring and its position in the file."""

    line: int
    text: str


@cache
def openings() -> Advice:
    """Return the first words to avoid, each with what to write instead."""
    listed = tomllib.loads(read(LISTS))["docstrings"]["openings"]
    return {re.compile(rf"(?:{words})(?![\w'])"): advice for words, advice in listed.items()}


@cache
def entry_openings() -> Advice:
    """Return the first words to avoid in the description of a parameter, each with advice."""
    listed = tomllib.loads(read(LISTS))["docstrings"]["entries"]
    return {re.compile(rf"(?:{words})(?![\w'])"): advice for words, advice in listed.items()}


@cache
def turns() -> Advice:
    """Return the turns to avoid, each with what to write instead."""
    listed = tomllib.loads(read(LISTS))["docstrings"]["turns"]
    spaced = ((words.replace(" ", r"\s+"), advice) for words, advice in listed.items())
    return {re.compile(rf"\b(?:{words})\b", re.IGNORECASE): advice for words, advice in spaced}


@cache
def docstrings(source: str) -> tuple[Docstring, ...]:
    """Return the docstrings of modules, classes, functions, constants and fields."""
    return tuple(_docstrings(source))


def _docstrings(source: str) -> Iterator[Docstring]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, Documented) and ast.get_docstring(node):
            yield _docstring(node.body[0])
        if isinstance(node, ast.Module | ast.ClassDef):
            for before, after in pairwise(node.body):
                if isinstance(before, ast.Assign | ast.AnnAssign) and _is_text(after):
                    yield _docstring(after)


def odd_openings(path: Path, source: str) -> Iterator[str]:
    """Find docstrings that begin with a word to avoid."""
    for one in docstrings(source):
        for words, advice in openings().items():
            if words.match(one.text):
                yield f"{at(path).rpartition(':')[0]}:{one.line}: {_shown(one.text)!r}; {advice}"


def odd_entries(path: Path, source: str) -> Iterator[str]:
    """Find descriptions of parameters, attributes and errors that begin with a word to avoid."""
    file = at(path).rpartition(":")[0]
    for one in docstrings(source):
        for line, text in _entries(one):
            odd = (advice for words, advice in entry_openings().items() if words.match(text))
            if advice := next(odd, ""):
                yield f"{file}:{line}: {text!r}; {advice}"


def _entries(one: Docstring) -> Iterator[tuple[int, str]]:
    """Yield the first line of each description in the numpydoc sections of a docstring."""
    lines = [*enumerate(one.text.splitlines(), one.line)]
    edge = -1
    for (_, before), (number, line) in pairwise(lines):
        if line.strip() and not line.strip(" -"):
            edge = _indentation(line) if before.strip() in SECTIONS else -1
        elif edge >= 0 and _indentation(line) == edge + 4 and _indentation(before) == edge:
            yield number, line.strip()


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip()) if line.strip() else -1


def odd_turns(path: Path, source: str) -> Iterator[str]:
    """Find turns to avoid in the prose of docstrings."""
    for one in docstrings(source):
        prose = LITERAL.sub(_blank, NO_PROSE.sub(_blank, one.text))
        for words, advice in turns().items():
            for found in words.finditer(prose):
                line = one.line + prose.count("\n", 0, found.start())
                turn = " ".join(found[0].split())
                yield f"{at(path).rpartition(':')[0]}:{line}: {turn!r}; write: {advice}"


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def _docstring(node: ast.stmt) -> Docstring:
    assert isinstance(node, ast.Expr)
    assert isinstance(node.value, ast.Constant)
    return Docstring(node.lineno, str(node.value.value).lstrip())


def _shown(text: str) -> str:
    return text.partition("\n")[0]


def _blank(found: re.Match[str]) -> str:
    """Keep the line breaks of what is no prose, so that lines can be counted."""
    return re.sub(r"[^\n]", " ", found[0])
