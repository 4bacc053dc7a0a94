"""The laws of turns: every module in every round, none twice, whatever the order of modules."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from notebook_probe.probes.due.turns import LEAST_MODULES, MOST_TURNS, Turns
from notebook_probe.probes.step.stretching import LARGEST

FACTORS = [2**n for n in range(LARGEST.bit_length())]
factors = st.sampled_from(FACTORS)
names = st.sets(st.text("abc.0123", min_size=1, max_size=6), min_size=1, max_size=300)


def places_of(n: int) -> list[str]:
    return [f"blocks.{i:05}" for i in range(n)]


@given(names, factors, st.integers(0, 5000))
def test_each_module_is_measured_once_in_any_so_many_due_steps(
    places: set[str], factor: int, first: int
) -> None:
    turns = Turns(places)
    for place in places:
        due = [k for k in range(first, first + factor) if k % factor == turns.turn(place, factor)]
        assert len(due) == 1


@given(names, factors, st.randoms(use_true_random=False))
def test_the_order_of_modules_changes_nothing(
    places: set[str], factor: int, shuffled: random.Random
) -> None:
    given_ = [*places, *places]
    shuffled.shuffle(given_)
    one, other = Turns(sorted(places)), Turns(given_)
    assert one.n == other.n
    assert all(one.turn(place, factor) == other.turn(place, factor) for place in places)


@given(names, factors, factors)
def test_quantities_with_different_factors_meet_at_a_module(
    places: set[str], some: int, other: int
) -> None:
    """What is measured more rarely is measured where the more frequent one is."""
    more, less = sorted((some, other))
    turns = Turns(places)
    for place in places:
        assert turns.turn(place, less) % more == turns.turn(place, more)


@given(st.integers(1, 3000), factors)
def test_each_turn_has_its_fair_part_of_the_modules_and_no_fewer_than_pay(
    n: int, factor: int
) -> None:
    turns = Turns(places_of(n))
    sizes = Counter(turns.turn(place, factor) for place in places_of(n))
    n_turns = min(turns.n, factor)
    assert len(sizes) == n_turns <= MOST_TURNS
    assert max(sizes.values()) <= -(-n // turns.n) * (turns.n // n_turns)
    assert n_turns == 1 or min(sizes.values()) >= LEAST_MODULES


@pytest.mark.parametrize("n", [32, 80, 300, 2000])
@pytest.mark.parametrize("factor", FACTORS)
def test_turns_are_spread_evenly_over_the_due_steps(n: int, factor: int) -> None:
    turns = Turns(places_of(n))
    used = sorted({turns.turn(place, factor) for place in places_of(n)})
    gaps = [b - a for a, b in zip(used, [*used[1:], used[0] + factor], strict=True)]
    even = factor / len(used)
    assert all(even / 2 <= gap <= 2 * even for gap in gaps)


def test_few_modules_are_measured_together() -> None:
    places = places_of(2 * LEAST_MODULES - 1)
    turns = Turns(places)
    assert {turns.turn(place, 64) for place in places} == {0}


def test_a_place_that_takes_no_turns_is_measured_at_the_first_due_step() -> None:
    assert Turns(places_of(100)).turn("elsewhere", 8) == 0
