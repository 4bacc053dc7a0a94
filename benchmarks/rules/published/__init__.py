"""Published sets of faults, one training for each kind: programs of forums, and silent errors."""

from __future__ import annotations

from benchmarks.rules.published import forum_programs, silent_errors

__all__ = ["RECIPES"]

RECIPES = (*forum_programs.HERE, *silent_errors.HERE)
