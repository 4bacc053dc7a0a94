"""Dropout that stays on in an evaluation, found by following one, function by function."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from notebook_probe.examine.checks.dropout import dropped_share
from notebook_probe.source_lines import is_of_user, outward, text_of

__all__ = ["DropoutFollower"]

CONTAINERS = str(Path(torch.nn.__file__).parent)
"""Code of torch's own layers, which take the mode from the layer."""


RANDOM = {
    *("rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like"),
    *("bernoulli", "bernoulli_", "normal", "normal_", "uniform_", "multinomial", "exponential_"),
}
"""Names of functions of torch that draw random numbers."""


class DropoutFollower(TorchFunctionMode):
    """Mode that notes the first dropout of user code that is active.

    Attributes
    ----------
    name, place : str
        Function and line of it; empty before it is found.
    share : float
        Share of the elements that it drops.
    drawn : str
        First function of user code that draws random numbers, with its line.
    """

    def __init__(self) -> None:
        super().__init__()
        self.name = self.place = self.drawn = ""
        self.share = 0.0

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = kwargs or {}
        if not self.name:
            share = dropped_share(func, args, given)
            if share > 0 and (place := _line_of_user()):
                self.name, self.share, self.place = func.__name__, share, place
        if (
            not self.drawn
            and getattr(func, "__name__", "") in RANDOM
            and (place := _line_of_user())
        ):
            self.drawn = f"{func.__name__} at {place}"
        return func(*args, **given)


def _line_of_user() -> str:
    """Return the line that calls a function now; empty if a layer is in training mode on purpose.

    Those of torch pass their own mode on.
    """
    for frame in outward(sys._getframe(2)):
        file = frame.f_code.co_filename
        if file.startswith(CONTAINERS) and not file.endswith("functional.py"):
            return ""
        if is_of_user(frame):
            layer = frame.f_locals.get("self")
            return "" if isinstance(layer, nn.Module) and layer.training else text_of(frame)
    return ""
