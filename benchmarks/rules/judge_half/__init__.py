"""The half of the trainings that the rules are judged on, and no threshold is set on."""

from __future__ import annotations

from benchmarks.rules.recipe import Recipe

__all__ = ["RECIPES"]

RECIPES: tuple[Recipe, ...] = ()
