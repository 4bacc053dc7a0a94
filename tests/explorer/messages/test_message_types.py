"""The TypeScript declarations of the panel's messages, and the dictionaries they come from."""

from __future__ import annotations

from typing import Literal

import pytest

from tools.message_types import DECLARATIONS, declarations, typescript


def test_the_declarations_are_those_of_the_typed_dictionaries() -> None:
    assert DECLARATIONS.read_text(encoding="utf-8") == declarations(), (
        "run `python -m tools.message_types`"
    )


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        (list[tuple[str, int]], "Array<[string, number]>"),
        (dict[str, float | None], "Record<string, number | null>"),
        (Literal["max", "mean"], '"max" | "mean"'),
    ],
)
def test_a_type_of_python_has_its_like_in_typescript(hint: object, expected: str) -> None:
    assert typescript(hint) == expected


def test_a_type_that_json_has_not_is_refused() -> None:
    with pytest.raises(TypeError, match="bytes"):
        typescript(bytes)
