"""Hostile records through every door, in child processes with limits on time and memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.hostile.corpus import CORPUS, DOZEN
from tests.hostile.doors import DOORS
from tests.hostile.trial import Trials

FEW_DOORS = ("data", "catalogue", "continue", "to_html")


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trials]:
    """The process of all trials: importing all that records need takes seconds."""
    one = Trials(tmp_path_factory.mktemp("trials"))
    yield one
    one.end()


@pytest.mark.slow
@pytest.mark.parametrize("part", range(3))
def test_a_dozen_hostile_records_meet_one_clear_error_at_the_doors_most_used(
    trials: Trials, part: int
) -> None:
    assert trials.faults(DOZEN[part::3], FEW_DOORS) == []


@pytest.mark.slow
def test_rows_that_a_later_branch_claims_are_refused_wherever_they_are_read_piece_by_piece(
    trials: Trials,
) -> None:
    names = ["rows scalars/every_1.r2: 3000000000", "rows scalars/every_1.r2: 1000000000000000"]
    doors = ("thinned", "parting", "series of a pattern", "plot --ascii")
    assert trials.faults(names, doors) == []


@pytest.mark.slow
def test_names_of_any_length_and_any_letter_are_drawn(trials: Trials) -> None:
    assert trials.faults(["logged name: long", "title: unpaired"], ("to_html",)) == []


@pytest.mark.stress
@pytest.mark.timeout(1800)  # each door has a limit of its own
@pytest.mark.parametrize("part", range(20))
def test_every_hostile_record_meets_one_clear_error_at_every_door(
    trials: Trials, part: int
) -> None:
    assert trials.faults([*CORPUS][part::20], [*DOORS]) == []
