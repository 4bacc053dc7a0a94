"""Small changes of a source text that a test should notice, one at a time."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from difflib import unified_diff

__all__ = ["Mutant", "mutants"]

COMPARED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
CALCULATED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
}
WITHOUT_MEANING = {"annotation", "returns", "decorator_list", "type_params", "bases"}
"""Parts of the syntax tree in which nothing is changed: types, and what registers a function."""


@dataclass(frozen=True)
class Mutant:
    """A source text that differs from the original in one place."""

    line: int
    original: str
    changed: str

    def diff(self, file: str) -> str:
        """Return the difference as a patch without context."""
        lines = (self.original.splitlines(), self.changed.splitlines())
        return "\n".join(unified_diff(*lines, file, file, lineterm="", n=0))


def mutants(source: str) -> Iterator[Mutant]:
    """Return every mutant of a source text, in the order of its lines."""
    lines = [0]
    for line in source.encode().splitlines(keepends=True):
        lines.append(lines[-1] + len(line))  # columns of a syntax tree count bytes
    found = sorted(edits(ast.parse(source)), key=lambda edit: (edit[0].lineno, edit[0].col_offset))
    for node, text in found:
        start = lines[node.lineno - 1] + node.col_offset
        end = lines[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        changed = source.encode()[:start] + text.encode() + source.encode()[end:]
        yield Mutant(node.lineno, source, changed.decode())


Edit = tuple[ast.expr | ast.stmt, str]
"""A node, and the text that replaces it."""


def edits(node: ast.AST) -> Iterator[Edit]:
    """Return the changes of a node and of all below it."""
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp() | ast.BinOp() | ast.Constant():
            yield from ((node, f"({ast.unparse(one)})") for one in changed(node))
        case ast.Expr(value=ast.Constant()):
            return  # a docstring
        case ast.Expr() | ast.AugAssign() | ast.Raise() | ast.Delete():
            yield node, "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield node, "pass"
        case ast.Return(value=ast.expr() as value) if not is_none(value):
            yield node, "return None"
    for name, child in ast.iter_fields(node):
        if name not in WITHOUT_MEANING and not isinstance(node, ast.JoinedStr):
            for one in child if isinstance(child, list) else [child]:
                if isinstance(one, ast.AST):
                    yield from edits(one)


def is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def changed(node: ast.expr) -> Iterable[ast.expr]:
    """Return an expression with another operator or another constant."""
    match node:
        case ast.Compare(ops=ops):
            for i, op in enumerate(ops):
                other = copy(node)
                other.ops = [*ops[:i], COMPARED[type(op)](), *ops[i + 1 :]]
                yield other
        case ast.BoolOp(op=op, values=values):
            yield ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), values)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.BinOp(left=left, op=op, right=right) if type(op) in CALCULATED:
            yield ast.BinOp(left, CALCULATED[type(op)](), right)
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)
        case ast.Constant(value=int() | float() as value):
            yield ast.Constant(value + 1)
