"""What an alert says is read by people: its numbers are never long."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.alerts.sentence import sentence

SPECS = ["", ":.0%", ":.2%", ":.1f", ":.2f", ":.3g", ":+.2e"]


@pytest.mark.parametrize(
    ("says", "number", "said"),
    [
        ("{x:.0%}", 0.314, "31%"),
        ("{x:.0%}", 7.913446e24, "7.9e+26%"),
        ("{x:.0f} times", 16.0, "16 times"),
        ("{x:.0f} times", 7.913446e24, "7.91e+24 times"),
        ("{x}", 0.1 + 0.2, "0.3"),
        ("{x:.0%}", float("nan"), "NaN"),
        ("{x:.0%}", float("-inf"), "-inf"),
        ("{x}", float("nan"), "NaN"),
        ("{x}", 123456789, "123456789"),
        ("{{}} {x}", 1, "{} 1"),
    ],
)
def test_numbers_are_written_as_asked_for_or_short(says: str, number: float, said: str) -> None:
    assert sentence(says, {"x": number}) == said


@given(st.floats(), st.sampled_from(SPECS))
def test_no_number_takes_more_than_a_word(number: float, spec: str) -> None:
    said = sentence(f"{{x{spec}}}", {"x": number})
    assert len(said) <= 10
    if abs(number) < sys.float_info.max / 100 and said.endswith("%"):
        assert float(said[:-1]) / 100 == pytest.approx(number, rel=0.06, abs=0.006)
