"""What the panel offers for a schedule is one, and every kind is offered."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import notebook_probe.explorer
from notebook_probe.schedules import schedule
from notebook_probe.schedules.text import FORMS

SCRIPT = Path(notebook_probe.explorer.__file__).parent / "js/controls/schedule_examples.js"
OFFERED = re.findall(r'^  \["([^"]+)", "[^"]+"\],$', SCRIPT.read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("text", OFFERED)
def test_an_example_is_read(text: str) -> None:
    assert schedule(text) == schedule(str(schedule(text)))


def test_every_kind_is_offered() -> None:
    words = set(re.findall(r"[a-z_]+|[&|]", " ".join(OFFERED)))
    assert words == {*FORMS, "&", "|"}
