"""The code of docs/experiments.md runs as it is printed."""

import re
from pathlib import Path

import pytest

from tests.run.conftest import programs
from tests.run.programs import Programs

__all__ = ["programs"]

PAGE = Path(__file__).parents[2] / "docs" / "experiments.md"
BLOCK = re.compile(r"^```python\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)

AFTER = """
assert loop.last_metrics["learning_rate"] == exponential_decay(7, 0.1, 100, 0.95)
assert 0 <= validation.run(model, call=lambda model, batch: model(batch["x"]))["accuracy"] <= 1
"""


@pytest.mark.xdist_group("programs")  # one process imports torch for them all
def test_the_page_runs(programs: Programs, tmp_path: Path) -> None:
    blocks = BLOCK.findall(PAGE.read_text("utf-8"))
    assert programs.run("\n".join([*blocks, AFTER]), folder=tmp_path) == (0, "")
