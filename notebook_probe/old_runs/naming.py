"""Module and quantity in the names under which other tools log numbers of layers."""

from __future__ import annotations

import re

__all__ = ["module_and_quantity"]

QUANTITIES = {
    "grad_norm": "grad_norm",
    "gradient_norm": "grad_norm",
    "grad_2.0_norm": "grad_norm",
    "weight_norm": "weight_norm",
    "param_norm": "weight_norm",
    "update_norm": "update_norm",
    "update_ratio": "update_ratio",
    "gradients": "logged_gradient",
    "parameters": "logged_parameter",
}
"""Quantity by the first part of a name; a norm is the 2-norm everywhere."""

_BEFORE = re.compile(r"(?P<quantity>[\w.]+)/(?P<module>[\w.]*\.[\w.]*)", re.ASCII)
_AFTER = re.compile(
    r"(?P<module>\w+(?:\.\w+)+)/"
    r"(?P<quantity>(?:weight|grad|grad_output|input|output|update)_[a-z0-9_]+)",
    re.ASCII,
)


def module_and_quantity(name: str) -> tuple[str, str] | None:
    """Return the module and the quantity that a logged name is about; None if it names none.

    A module is believed if its path has a dot: ``train/grad_norm`` is about the whole model.

    Examples
    --------
    >>> module_and_quantity("grad_2.0_norm/body.0.weight")
    ('body.0.weight', 'grad_norm')
    >>> module_and_quantity("layer1.conv/output_mean")
    ('layer1.conv', 'output_mean')
    >>> module_and_quantity("train/grad_norm") is None
    True
    """
    before = _BEFORE.fullmatch(name)
    if before is not None and before["quantity"] in QUANTITIES:
        return before["module"].strip("."), QUANTITIES[before["quantity"]]
    after = _AFTER.fullmatch(name)
    return None if after is None else (after["module"], after["quantity"])
