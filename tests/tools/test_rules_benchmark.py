"""The benchmark of alert rules: its trainings are what they say they are, and always the same."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.rules.recipe import NOTHING, Case, Cause, Part, Recipe
from benchmarks.rules.registry import CASES, RECIPES
from benchmarks.rules.runner import Outcome, Said, Watching, trained
from benchmarks.rules.verdict import judged


def test_each_training_and_each_cause_in_it_has_a_name_of_its_own() -> None:
    healthy = {recipe.name for recipe in RECIPES}

    assert len(healthy) == len({(recipe.name, recipe.part) for recipe in RECIPES})
    n_planted = sum(recipe.cause is not NOTHING for recipe in RECIPES)
    assert len(CASES) == len(healthy) + n_planted
    assert len(healthy) >= 100
    assert n_planted >= 140


@pytest.mark.slow
def test_a_training_is_the_same_every_time() -> None:
    case = CASES["likelihood_by_hand+log_of_0"]

    first, second = (trained(case, Watching((), has_budget=False)) for _ in range(2))

    assert (first.improved, first.harm) == pytest.approx(
        (second.improved, second.harm), nan_ok=True
    )


def test_what_is_said_before_the_cause_is_false_and_a_name_in_time_is_right() -> None:
    cause = Cause("planted", 150, frozenset({"lr_high"}), frozenset({"dead_units"}))
    case = Case(Recipe("one", "set", cause, CASES["flowers"].recipe.build), planted=True)
    said = (Said(149, "lr_high", "0"), Said(150, "lr_high", "0"), Said(151, "dead_units", "1"))

    verdict = judged(case, Outcome((*said, Said(152, "loader_bound", "")), (), 0.1, True, 1.0, 0.0))

    assert verdict.false == said[:1]
    assert verdict.right == said[1:2]
    assert verdict.follows == said[2:]
    assert [one.rule for one in verdict.also] == ["loader_bound"]
    assert verdict.is_named


@pytest.mark.parametrize("part", ["set", "judge", "unseen"])
def test_a_part_has_twenty_trainings_with_causes_of_their_own(part: Part) -> None:
    causes = [recipe.cause.name for recipe in RECIPES if recipe.part == part]

    assert len(set(causes)) == len(causes) == 20


@pytest.mark.parametrize("part", ["mistakes_set", "mistakes_judge"])
def test_a_training_with_mistakes_has_four_of_them(part: Part) -> None:
    names = Counter(recipe.name for recipe in RECIPES if recipe.part == part)

    assert len(names) >= 10
    assert {*names.values()} == {4}


def test_where_rules_are_set_and_where_they_are_judged_the_same_ones_are_asked_for() -> None:
    """But for a few, of which one part has a cause and the other a cousin of it."""
    asked = [
        frozenset().union(*(recipe.cause.names for recipe in RECIPES if recipe.part == part))
        for part in ("set", "judge")
    ]

    assert len(asked[0] ^ asked[1]) <= 3
