"""Trainings that were written and run when every rule stood; none was changed for them."""

from __future__ import annotations

from benchmarks.rules.unseen import layers, loops, numbers, rates

__all__ = ["RECIPES"]

RECIPES = (*rates.HERE, *layers.HERE, *numbers.HERE, *loops.HERE)
