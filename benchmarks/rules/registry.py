"""Every training of the benchmark, by name."""

from __future__ import annotations

from benchmarks.rules.judged_on import RECIPES as JUDGED
from benchmarks.rules.mistakes import RECIPES as MISTAKES
from benchmarks.rules.practice import RECIPES as PRACTICE
from benchmarks.rules.published import RECIPES as PUBLISHED
from benchmarks.rules.set_on import RECIPES as SET
from benchmarks.rules.unseen import RECIPES as UNSEEN

__all__ = ["CASES", "RECIPES"]

RECIPES = (*SET, *JUDGED, *UNSEEN, *MISTAKES, *PRACTICE, *PUBLISHED)
CASES = {case.name: case for recipe in RECIPES for case in recipe.cases()}
