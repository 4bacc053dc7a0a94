"""Parts of a training step, in which quantities arise one after the other."""

from __future__ import annotations

from enum import IntEnum

from notebook_probe.record.format.source import Variable

__all__ = ["Stage", "stage_of"]


class Stage(IntEnum):
    """Part of a step, in the order in which a training computes them."""

    WEIGHTS = 0
    FORWARD = 1
    LOSS = 2
    BACKWARD = 3
    UPDATE = 4


OF = {
    "weight": Stage.WEIGHTS,
    "grad": Stage.BACKWARD,
    "grad_output": Stage.BACKWARD,
    "grad_input": Stage.BACKWARD,
    "update": Stage.UPDATE,
}
"""Stage of a tensor that is measured; others are of the forward pass."""


def stage_of(variable: Variable) -> Stage:
    """Return the stage of a quantity, by the last tensor that it needs; a logged one is the loss.

    Examples
    --------
    >>> stage_of(Variable("update_ratio", attrs={"needs": "update, weight"})).name
    'UPDATE'
    """
    needs = [name.strip() for name in variable.attrs.get("needs", "").split(",")]
    return max((OF.get(name, Stage.FORWARD) for name in needs if name), default=Stage.LOSS)
