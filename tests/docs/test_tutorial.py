"""Pages that bring their own model run from top to bottom and show what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.running import run_page
from tests.run.programs import Programs

AFTER = """
assert {"lr_high", "early_divergence"} <= {alert.rule for alert in wrong.alerts}
assert not record.alerts
assert record.series("", "backward_loss").size == 200
ranks = record.series("2", "effective_rank").step.values
assert ranks.tolist() == list(range(100, 200, 10))
assert record.config == {"lr": 0.01}
"""


@pytest.mark.slow
def test_the_tutorial_runs_from_top_to_bottom(programs: Programs, tmp_path: Path) -> None:
    run_page("tutorial.md", programs, tmp_path, after=AFTER)


AFTER_SCRIPT = """
from pathlib import Path
assert Path("first.html").stat().st_size > 100_000 and not record.alerts
assert grad_norm.size == 100 and record.config == {"lr": 0.01}
assert float(record.series("", "epoch")[-1]) == 4.0
"""


def test_the_script_trains_hands_its_panel_on_and_is_read_again(
    programs: Programs, tmp_path: Path
) -> None:
    run_page("how_to/script.md", programs, tmp_path, after=AFTER_SCRIPT)
