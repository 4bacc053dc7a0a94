"""The trainings that the rules are judged on, and no threshold is set on."""

from __future__ import annotations

from benchmarks.rules.judged_on import layers, loops, numbers, rates

__all__ = ["RECIPES"]

RECIPES = (*rates.HERE, *layers.HERE, *numbers.HERE, *loops.HERE)
