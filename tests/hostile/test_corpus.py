"""Hostile records through every door, in child processes with limits on time and memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

import pytest

from tests.hostile.corpus import CORPUS, DOZEN
from tests.hostile.doors import DOORS

FEW_DOORS = ("data", "catalogue", "continue", "to_html")


def tried(names: Sequence[str], doors: Sequence[str]) -> str:
    """Faults, a line each; the trial forks, which no process with threads should."""
    command = [sys.executable, "-W", "ignore", "-m", "tests.hostile.trial", *names, "--", *doors]
    env = {**os.environ, "MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return "\n".join(line for line in done.stdout.splitlines() if " | " in line)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_a_dozen_hostile_records_meet_one_clear_error_at_the_doors_most_used(part: int) -> None:
    assert tried(DOZEN[part::3], FEW_DOORS) == ""


@pytest.mark.slow
def test_rows_that_a_later_branch_claims_are_refused_wherever_they_are_read_piece_by_piece() -> (
    None
):
    names = ["rows scalars/every_1.r2: 3000000000", "rows scalars/every_1.r2: 1000000000000000"]
    assert tried(names, ("thinned", "parting", "series of a pattern", "plot --ascii")) == ""


@pytest.mark.slow
def test_names_of_any_length_and_any_letter_are_drawn() -> None:
    assert tried(["logged name: long", "title: unpaired"], ("to_html",)) == ""


@pytest.mark.stress
@pytest.mark.timeout(1800)  # each door has a limit of its own
@pytest.mark.parametrize("part", range(20))
def test_every_hostile_record_meets_one_clear_error_at_every_door(part: int) -> None:
    assert tried([*CORPUS][part::20], [*DOORS]) == ""
