"""Names of numbers that are about an evaluation."""

from __future__ import annotations

import re

__all__ = ["names_evaluation"]

_PREFIX = re.compile(r"(eval|val|valid|validation|test|dev)(?![a-z])")


def names_evaluation(name: str) -> bool:
    """Return whether a logged name says that its number is of an evaluation.

    Examples
    --------
    >>> names_evaluation("val/loss"), names_evaluation("eval_f1"), names_evaluation("value_loss")
    (True, True, False)
    """
    return _PREFIX.match(name) is not None
