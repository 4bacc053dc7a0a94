"""Bounds of a quantity: as its attributes say, or as the name of a logged scalar suggests."""

from __future__ import annotations

from notebook_probe.record.format.schema import LOGGED_BY
from notebook_probe.record.format.source import Variable

__all__ = ["is_bounded", "is_share"]

SHARE = (0.0, 1.0)
LOGGED_SHARES = ("fraction", "share", "accuracy")
"""Name endings of shares, the only hint for logged scalars."""


def is_share(variable: Variable) -> bool:
    """Return whether a variable is between 0 and 1.

    Examples
    --------
    >>> is_share(Variable("dead_fraction", attrs={"lies_between": "0 1"}))
    True
    >>> [is_share(Variable(name, long_name=LOGGED_BY)) for name in ("eval_accuracy", "loss")]
    [True, False]
    """
    if variable.bounds is not None:
        return variable.bounds == SHARE
    return variable.long_name == LOGGED_BY and variable.name.endswith(LOGGED_SHARES)


def is_bounded(variable: Variable) -> bool:
    """Return whether a variable has known bounds, as a share or a cosine.

    Examples
    --------
    >>> is_bounded(Variable("grad_cosine", attrs={"lies_between": "-1 1"}))
    True
    """
    return variable.bounds is not None or is_share(variable)
