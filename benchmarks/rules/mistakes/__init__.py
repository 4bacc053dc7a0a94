"""Common mistakes, four in each of twenty trainings: what forums and bug studies are full of."""

from __future__ import annotations

from benchmarks.rules.mistakes import judged_on, set_on

__all__ = ["RECIPES"]

RECIPES = (*set_on.RECIPES, *judged_on.RECIPES)
