"""Every built-in quantity explains itself, on a card that fits; checks find those that do not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from notebook_probe.quantities import as_quantity
from notebook_probe.quantities.define.docstring import explained
from notebook_probe.quantities.table import built_in
from tests.static.explained import unbounded_shares, unexplained, wrong_cards
from tests.static.offenders import refuse

pytestmark = pytest.mark.static


def test_every_card_fits_a_terminal_and_says_the_same_in_a_notebook() -> None:
    assert len(built_in()) > 150
    refuse(wrong_cards(built_in()), "a card fits a terminal and says the same in a notebook")


def test_every_quantity_explains_itself() -> None:
    refuse(unexplained(built_in()), "a quantity explains itself")


def test_whatever_is_called_a_share_says_so() -> None:
    assert sum(one.bounds == (0, 1) for one in built_in()) > 15
    refuse(unbounded_shares(built_in()), "a share lies between 0 and 1")


def test_a_quantity_that_says_nothing_is_found_with_all_that_it_lacks() -> None:
    silent = replace(
        as_quantity("grad_norm"), explained=explained(""), source="", units="", question="Why?"
    )
    found = [*unexplained([as_quantity("grad_norm"), silent])]
    assert len(found) == 7
    assert all(one.startswith("notebook_probe/quantities/catalogue/") for one in found)
    assert found[1].endswith("grad_norm lacks a formula in double backticks in the first line")


def test_a_card_that_is_too_wide_is_found() -> None:
    wide = replace(as_quantity("grad_norm"), aliases=("x" * 200,))
    [found] = wrong_cards([as_quantity("grad_norm"), wide])
    assert "characters, at most " in found


def test_a_share_without_bounds_is_found() -> None:
    loose = replace(as_quantity("dead_fraction"), bounds=None)
    [found] = unbounded_shares([as_quantity("dead_fraction"), loose])
    assert found.endswith("dead_fraction: bounds=None; allowed: (0, 1)")
