"""``nbp output`` prints what a training has printed, with its steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from notebook_probe.record import RecordWriter
from notebook_probe.record.format.source import ModuleRow
from notebook_probe.record.views.printed_lines import PrintedLine, printed_detail
from tests.command_line.reading.conftest import Answered, Asked


@pytest.fixture
def printed(tmp_path: Path) -> str:
    """A record with 20 lines, in two events."""
    place = str(tmp_path / "printed.zarr")
    with RecordWriter(place, title="printed", modules=[ModuleRow("", "Net", 1, 1, -1)]) as writer:
        for first in (0, 10):
            lines = [PrintedLine(step, f"line {step}") for step in range(first, first + 10)]
            text = "\n".join(line.text for line in lines)
            writer.event(first + 9, "output", text, printed_detail(lines, 0))
    return place


def test_the_last_lines_are_printed_with_their_steps(printed: str, ask: Asked) -> None:
    code, out, _ = ask("output", printed, "--lines", "3")
    assert code == 0
    assert out.splitlines() == [
        "printed: finished, 0 steps",
        "17: line 17",
        "18: line 18",
        "19: line 19",
    ]


def test_as_json_the_newest_is_last_and_what_does_not_fit_is_the_oldest(
    printed: str, answer: Answered
) -> None:
    assert len(answer("output", printed)["lines"]) == 20
    cut = answer("output", printed, "--limit", "20")
    assert cut["lines"][-1] == {"step": 19, "text": "line 19"}
    assert 0 < len(cut["lines"]) < 20
    assert cut["left_out"] == 20 - len(cut["lines"])


def test_a_run_that_keeps_no_output_says_how(tmp_path: Path, ask: Asked) -> None:
    place = str(tmp_path / "silent.zarr")
    RecordWriter(place, title="silent", modules=[ModuleRow("", "Net", 1, 1, -1)]).close()
    out = ask("output", place)[1]
    assert out.splitlines()[1:] == ["no output is kept; nbp.keep_output(run) keeps it"]
