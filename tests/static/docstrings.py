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
