"""Common mistakes on which thresholds may be set."""

from __future__ import annotations

from benchmarks.rules.mistakes.set_on import classes, numbers, sequences

__all__ = ["RECIPES"]

RECIPES = (*classes.HERE, *numbers.HERE, *sequences.HERE)
