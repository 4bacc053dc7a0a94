"""Common mistakes on which the rules are judged; no threshold is set on them."""

from __future__ import annotations

from benchmarks.rules.mistakes.judged_on import classes, numbers, pairs, sequences

__all__ = ["RECIPES"]

RECIPES = (*classes.HERE, *numbers.HERE, *pairs.HERE, *sequences.HERE)
