"""Random conditions and rows, of values that are awkward in one way or another."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from notebook_probe.catalogues.query.comparisons import Among, Compared, Has, IsMissing, IsNan
from notebook_probe.catalogues.query.condition import Condition
from notebook_probe.catalogues.query.logic import Not, all_of, any_of

FIELDS = ["config.lr", "name", "tags", "in", "odd `key`[]", "ü.\x00\ud800", "x" * 300]
NUMBERS = [0, 1, -1, 0.5, 1e-3, 2**53, 2**53 + 1, -(2**53) - 1, 2**60, 2.0**60, 10**400, 5e-324]
TEXTS = [
    "",
    "a",
    "it's",
    'say "x"',
    "ü\U0001f600",
    "\x00",
    "a\x00b",
    "\ud800",
    "\uffff",
    "%_\\",
    "A",
]
LONG = ["z" * 255, "z" * 256, "z" * 256 + "a", "z" * 256 + "b", "é" * 200]
INJECTIONS = ["'; DROP TABLE entries; --", "__import__('os').system('x')", "1 OR 1=1", "\\'"]

texts = st.sampled_from(TEXTS + LONG + INJECTIONS) | st.text(st.characters(codec=None), max_size=5)
numbers = (
    st.sampled_from([*NUMBERS, float("inf"), float("-inf")])
    | st.integers(-3, 3)
    | st.floats(allow_nan=False)
)
plain = st.booleans() | numbers | texts
values = plain | st.lists(plain, max_size=2).map(tuple)
fields = st.sampled_from(FIELDS)

rows: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    fields,
    st.none()
    | st.just(float("nan"))
    | plain
    | st.lists(plain | st.none(), max_size=3)
    | st.just(["a"] * 100)
    | st.just({}),
)


def _compared(field: str, sign: str, value: Any) -> Condition:
    has_order = isinstance(value, int | float | str) and not isinstance(value, bool)
    return Compared(field, sign if has_order else "==", value)


simple = st.one_of(
    st.builds(_compared, fields, st.sampled_from(["==", "!=", "<", "<=", ">", ">="]), values),
    st.builds(Among, fields, st.lists(values, max_size=3).map(tuple)),
    st.builds(Has, fields, plain),
    st.builds(IsMissing, fields),
    st.builds(IsNan, fields),
)
conditions = st.recursive(
    simple,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.lists(inner, min_size=1, max_size=3).map(all_of),
        st.lists(inner, min_size=1, max_size=3).map(any_of),
    ),
    max_leaves=6,
)
