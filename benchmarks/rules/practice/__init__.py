"""Healthy trainings of other kinds than those that causes are planted in."""

from __future__ import annotations

from benchmarks.rules.practice import layers, loops, objectives

__all__ = ["RECIPES"]

RECIPES = (*objectives.HERE, *loops.HERE, *layers.HERE)
