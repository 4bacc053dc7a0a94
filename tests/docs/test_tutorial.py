"""The tutorial runs from top to bottom and shows what it says that it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.running import run_page
from tests.run.programs import Programs

AFTER = """
assert {"lr_high", "early_divergence", "dead_units"} <= {alert.rule for alert in wrong.alerts}
assert not record.alerts
assert record.series("", "backward_loss").size == 200
ranks = record.series("2", "effective_rank").step.values
assert ranks.tolist() == list(range(100, 200, 10))
assert record.config == {"lr": 0.01}
"""


@pytest.mark.xdist_group("programs")
def test_the_tutorial_runs_from_top_to_bottom(programs: Programs, tmp_path: Path) -> None:
    run_page("tutorial.md", programs, tmp_path, after=AFTER)
