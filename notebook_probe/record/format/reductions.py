"""The levels of a record: into how few rows many are reduced, and how."""

from __future__ import annotations

__all__ = ["METHODS", "SIZES"]

SIZES = (64, 1024, 16384)
"""Rows per block of each level; each a multiple of the previous one."""
METHODS = {"min": "minimum", "max": "maximum", "mean": "mean"}
"""Suffix of a reduction's array, and the CF name of its cell method."""
