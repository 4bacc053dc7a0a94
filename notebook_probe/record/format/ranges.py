"""What the values of a quantity lie between: as it says, or as a loop calls what it logs."""

from __future__ import annotations

from notebook_probe.record.format.schema import LOGGED_BY
from notebook_probe.record.format.source import Variable

__all__ = ["is_bounded", "is_share"]

SHARE = (0.0, 1.0)
LOGGED_SHARES = ("fraction", "share", "accuracy")
"""How names of shares end: of what a loop logs nothing else is said."""


def is_share(variable: Variable) -> bool:
    """Whether it lies between 0 and 1.

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
    """Whether its values lie between two that are known, as a share or a cosine.

    Examples
    --------
    >>> is_bounded(Variable("grad_cosine", attrs={"lies_between": "-1 1"}))
    True
    """
    return variable.bounds is not None or is_share(variable)
