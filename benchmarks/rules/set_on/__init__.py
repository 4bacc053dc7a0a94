"""The trainings that thresholds are set on."""

from __future__ import annotations

from benchmarks.rules.set_on import layers, loops, numbers, rates

__all__ = ["RECIPES"]

RECIPES = (*rates.HERE, *layers.HERE, *numbers.HERE, *loops.HERE)
