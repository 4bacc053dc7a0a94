"""Reading a formula: a small strict grammar, of which each error says what was expected and where.

A formula begins with ``=``. It has numbers, series, ``+ - * / ^``, brackets and functions::

    = 1 - accuracy
    = grad_norm@block.conv2 / weight_norm@block.conv2
    = mean(grad_norm@"blocks.*")
    = running_min(loss)

A series is a quantity, with ``@`` and a module where several modules have it. Names with other
characters than letters, digits, ``_`` and ``.`` are in quotes, as globs are.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from notebook_probe.errors import ProbeError, near
from notebook_probe.record.formulas.functions import FUNCTIONS
from notebook_probe.record.formulas.nodes import Call, Constant, Node, Operation, Reference

__all__ = ["FormulaError", "is_formula", "parsed"]

LONGEST = 500
DEEPEST = 40
"""Brackets within brackets, signs and powers that a formula may have."""

_TOKENS = re.compile(
    r"""\s*(?:
    (?P<number>\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)
    | (?P<name>[A-Za-z_]\w*(?:\.\w+)*)
    | (?P<quoted>"[^"]*"|'[^']*')
    | (?P<sign>[-+*/^()@])
    )""",
    re.VERBOSE,
)
_MODULE = re.compile(r"\w+(?:\.\w+)*")


class FormulaError(ProbeError, ValueError):
    """A formula that cannot be read, or has no value."""


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def is_formula(quantity: object) -> bool:
    """Return whether this names a formula, not a quantity.

    Examples
    --------
    >>> is_formula("= 1 - accuracy"), is_formula("accuracy")
    (True, False)
    """
    # Called before the name is checked: what is no text is refused there.
    return isinstance(quantity, str) and quantity.startswith("=")


@lru_cache(maxsize=256)
def parsed(formula: str) -> Node:
    """Return the parts of a formula.

    Raises
    ------
    FormulaError
        The formula is not complete, or has something else than the grammar allows.

    Examples
    --------
    >>> parsed("= 1 - accuracy")
    Operation(sign='-', left=Constant(value=1.0), right=Reference(quantity='accuracy', module=None))
    """
    if not is_formula(formula):
        raise FormulaError(f"{formula!r}: a formula begins with =")
    if len(formula) > LONGEST:
        raise FormulaError(f"a formula has {LONGEST} characters at most")
    return _FormulaReader(formula, _tokens(formula)).whole()


def _tokens(formula: str) -> list[_Token]:
    found, at = [], 1
    while formula[at:].strip():
        token = _TOKENS.match(formula, at)
        if token is None:
            text = formula[at:].lstrip()
            raise FormulaError(
                f"{formula!r}: {text[0]!r} is not allowed; names with it need quotes"
            )
        kind = str(token.lastgroup)
        found.append(_Token(kind, token[kind], token.start(kind)))
        at = token.end()
    return found


class _FormulaReader:
    """Reader of tokens from left to right, with a method for each level of precedence."""

    def __init__(self, formula: str, tokens: list[_Token]) -> None:
        self._formula, self._tokens = formula, tokens
        self._at = self._depth = 0

    def whole(self) -> Node:
        """Read everything."""
        node = self._sum()
        if self._next is not None:
            raise self._error("an operator")
        return node

    @property
    def _next(self) -> _Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _takes(self, signs: str) -> str:
        """Return the next sign if it is one of these, and go past it; else return ""."""
        token = self._next
        if token is None or token.kind != "sign" or token.text not in signs:
            return ""
        self._at += 1
        return token.text

    def _sum(self) -> Node:
        node = self._product()
        while sign := self._takes("+-"):
            node = Operation(sign, node, self._product())
        return node

    def _product(self) -> Node:
        node = self._signed()
        while sign := self._takes("*/"):
            node = Operation(sign, node, self._signed())
        return node

    def _signed(self) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise FormulaError(f"{self._formula!r}: more than {DEEPEST} parts within each other")
        try:
            if self._takes("-"):
                return Operation("-", Constant(0.0), self._signed())
            base = self._atom()
            return Operation("^", base, self._signed()) if self._takes("^") else base
        finally:
            self._depth -= 1

    def _atom(self) -> Node:
        token = self._next
        if token is None or (token.kind == "sign" and token.text != "("):
            raise self._error("a number, a series or a bracket")
        self._at += 1
        if token.kind == "number":
            return Constant(float(token.text))
        if token.kind == "sign":
            return self._bracketed()
        if token.kind == "name" and self._takes("("):
            return self._call(token.text)
        return self._reference(token)

    def _bracketed(self) -> Node:
        node = self._sum()
        if not self._takes(")"):
            raise self._error("a closing bracket")
        return node

    def _call(self, function: str) -> Node:
        if function not in FUNCTIONS:
            raise FormulaError(
                f"{self._formula!r}: no function {function!r}; {near(function, FUNCTIONS)}"
            )
        of = self._bracketed()
        if FUNCTIONS[function].takes_modules and not isinstance(of, Reference):
            raise FormulaError(
                f"{self._formula!r}: {function}() takes one quantity, over its modules, such as "
                f'{function}(grad_norm@"blocks.*")'
            )
        return Call(function, of)

    def _reference(self, quantity: _Token) -> Reference:
        if not self._takes("@"):
            return Reference(quantity.text.strip("\"'"))
        module = self._next
        if module is None or module.kind == "sign":
            raise self._error("a module after @")
        # A module such as `0.conv` begins as a number does.
        found = _MODULE.match(self._formula, module.at)
        text = module.text.strip("\"'") if module.kind == "quoted" or not found else found[0]
        end = module.at + len(module.text if module.kind == "quoted" or not found else found[0])
        while self._next is not None and self._next.at < end:
            self._at += 1
        return Reference(quantity.text.strip("\"'"), text)

    def _error(self, expected: str) -> FormulaError:
        token = self._next
        where = "at its end" if token is None else f"before {token.text!r}"
        return FormulaError(f"{self._formula!r}: {expected} is expected {where}")
