"""Alignment of two logs by module and operation, up to the first operation that differs."""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass
from difflib import SequenceMatcher

from notebook_probe.examine.operations.first_difference import DifferenceKind
from notebook_probe.examine.operations.hashes import TensorHash
from notebook_probe.examine.operations.log import LoggedOperation

__all__ = ["Difference", "first_of"]

NEAR = 300
"""Operations within which two logs are brought together again."""

Log = Sequence[LoggedOperation]


@dataclass(frozen=True, slots=True)
class Difference:
    """The first operation that differs, in either log."""

    kind: DifferenceKind
    this: LoggedOperation | None
    other: LoggedOperation | None
    is_backward: bool


@dataclass(frozen=True, slots=True)
class _Block:
    """Operations in which two logs differ, at one position."""

    this: Log
    other: Log

    def changes_values(self, known: Set[TensorHash]) -> bool:
        """Return whether a result in it is neither one of the other side nor a known value."""
        here, there = _results(self.this), _results(self.other)
        return bool((here ^ there) - _given(self.this) - _given(self.other) - known)

    def as_difference(self, is_backward: bool) -> Difference:
        """Return it as the cause of a difference in the forward or the backward."""
        first = (*self.this, *self.other)[0]
        this = self.this[0] if self.this else None
        other = self.other[0] if self.other else None
        kind: DifferenceKind = "graph" if first.is_backward else "operation"
        return Difference(kind, this, other, is_backward)


def first_of(this: Log, other: Log, tolerance: float) -> Difference | None:
    """Return the first difference of values, or its cause; None if all values are equal.

    Operations without a counterpart that change no value, as a view, are no difference. If the
    values that go into an operation differ, the cause is the last such operation before it. A
    difference of the backward is caused by such an operation of the forward, as a `detach`.
    """
    halves = _half(this, False), _half(other, False)
    forward = _walked(*halves, frozenset(), tolerance)
    if forward.pair is not None or forward.last is not None:
        return forward.difference(tolerance)
    known = _results(halves[0]) | _results(halves[1])
    backward = _walked(_half(this, True), _half(other, True), known, tolerance)
    if backward.pair is None and backward.last is None:
        return None
    if forward.blocks:
        return forward.blocks[0].as_difference(is_backward=True)
    if backward.blocks:
        return backward.blocks[0].as_difference(is_backward=True)
    return backward.difference(tolerance)


@dataclass(frozen=True, slots=True)
class _PassPair:
    """Operations of one pass in both logs, up to a pair with different results."""

    blocks: tuple[_Block, ...]
    known: Set[TensorHash]
    """Results of the pass before, which a checkpointed model computes again."""
    pair: tuple[LoggedOperation, LoggedOperation] | None

    @property
    def last(self) -> _Block | None:
        """The last block that changes values."""
        changing = (block for block in self.blocks[::-1] if block.changes_values(self.known))
        return next(changing, None)

    def difference(self, tolerance: float) -> Difference | None:
        """Return the difference that the results have, or the block that causes it."""
        block = self.last or (self.blocks[-1] if self.blocks else None)
        if self.pair is None:
            return None if block is None else block.as_difference(is_backward=False)
        one, two = self.pair
        has_equal_inputs = _are_near(one.inputs, two.inputs, tolerance)
        if block is not None and not has_equal_inputs:
            return block.as_difference(one.is_backward)
        kind: DifferenceKind = "arguments" if one.arguments != two.arguments else "inputs"
        if kind == "inputs" and has_equal_inputs:
            kind = "result"
        return Difference(kind, one, two, one.is_backward)


def _half(log: Log, is_backward: bool) -> Log:
    return [one for one in log if one.is_backward == is_backward]


def _walked(this: Log, other: Log, known: Set[TensorHash], tolerance: float) -> _PassPair:
    i, j = 0, 0
    blocks: list[_Block] = []
    while i < len(this) and j < len(other):
        one, two = this[i], other[j]
        if one.token != two.token:
            n, m = _next_equal(this, other, i, j)
            blocks.append(_Block(this[i : i + n], other[j : j + m]))
            i, j = i + n, j + m
        elif _is_equal(one, two, tolerance):
            i, j = i + 1, j + 1
        else:
            return _PassPair(tuple(blocks), known, (one, two))
    if i < len(this) or j < len(other):
        blocks.append(_Block(this[i:], other[j:]))
    return _PassPair(tuple(blocks), known, None)


def _is_equal(one: LoggedOperation, two: LoggedOperation, tolerance: float) -> bool:
    """Return whether results are equal; with other arguments, bit for bit."""
    if one.arguments != two.arguments:
        return _are_near(one.outputs, two.outputs, 0.0)
    # Kernels such as those of recurrent layers return a workspace in addition, with memory that
    # nothing has written: the first result counts, and whatever uses another one is looked at.
    n = 1 if _are_near(one.inputs, two.inputs, tolerance) else None
    return _are_near(one.outputs[:n], two.outputs[:n], tolerance)


def _are_near(these: Sequence, others: Sequence, tolerance: float) -> bool:  # type: ignore[type-arg]
    return len(these) == len(others) and all(
        a.is_near(b, tolerance) for a, b in zip(these, others, strict=True)
    )


def _given(log: Log) -> set[TensorHash]:
    """Return the inputs of some operations that none of them has computed."""
    given: set[TensorHash] = set()
    made: set[TensorHash] = set()
    for one in log:
        given |= set(one.inputs) - made
        made |= set(one.outputs)
    return given


def _results(log: Log) -> set[TensorHash]:
    return {one for each in log for one in each.outputs}


def _next_equal(this: Log, other: Log, i: int, j: int) -> tuple[int, int]:
    """Return how many operations to skip in either log until both continue with the same ones."""
    these = [one.token for one in this[i : i + NEAR]]
    others = [one.token for one in other[j : j + NEAR]]
    matcher = SequenceMatcher(None, these, others, autojunk=False)
    blocks = matcher.get_matching_blocks()
    long = (one for one in blocks if one.size > 1)
    found = next(long, blocks[0])
    return (found.a, found.b) if found.size else (len(these), len(others))
