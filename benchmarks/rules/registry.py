"""Every training of the benchmark, by name."""

from __future__ import annotations

from benchmarks.rules.judge_half import RECIPES as JUDGED
from benchmarks.rules.set_half import RECIPES as SET

__all__ = ["CASES", "RECIPES"]

RECIPES = (*SET, *JUDGED)
CASES = {case.name: case for recipe in RECIPES for case in recipe.cases()}
