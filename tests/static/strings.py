"""String literals and comments of the code that are prose: errors, help, labels, and notes."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

__all__ = ["comments_of", "strings_of", "strings_of_javascript"]

WORDS = re.compile(r"[A-Za-z]+ [A-Za-z]+ [a-z]+")
"""Three words in a row: fewer are a name, a key or a class of CSS."""
JAVASCRIPT = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"((?:[^"\\\n]|\\.)*)"|'((?:[^'\\\n]|\\.)*)'|`((?:[^`\\]|\\.)*)`""",
    re.DOTALL,
)
INSERTED = re.compile(r"\$\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}")


def strings_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the prose of each string of a Python file that is no docstring.

    Examples
    --------
    >>> [*strings_of('"Do it."\\nraise ValueError(f"{n} is not a number here")')]
    [(2, ' is not a number here')]
    """
    tree = ast.parse(text)
    alone = {id(one.value) for one in ast.walk(tree) if isinstance(one, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in alone:
            value = node.value
            if isinstance(value, str) and WORDS.search(value):
                yield node.lineno, value


def comments_of(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each comment of a Python file.

    Examples
    --------
    >>> [*comments_of("x = 1  # the first")]
    [(1, 'the first')]
    """
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("# ")


def strings_of_javascript(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the prose of each string of a JavaScript file; no comment.

    Examples
    --------
    >>> [*strings_of_javascript('// a b c\\nlabel("Add series to it", `of ${n} runs of x`)')]
    [(2, 'Add series to it'), (2, 'of x runs of x')]
    """
    for found in JAVASCRIPT.finditer(text):
        said = next((part for part in found.groups() if part is not None), "")
        said = INSERTED.sub("x", said)
        if WORDS.search(said):
            yield text.count("\n", 0, found.start()) + 1, said
