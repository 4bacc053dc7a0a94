"""Features: what a quantity may ask of a module or a parameter, and when it can be read.

A feature is a tensor (``output``) or a summary of one (``output_moments``). The four tensors of a
call belong to modules; the others belong to parameters, by their own name or that of their module.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

from notebook_probe.errors import QuantityError, near

__all__ = ["CALL", "PARAMETER", "TENSORS", "Feature", "Moment", "moment_of", "read"]

Moment: TypeAlias = Literal["forward", "backward", "entry", "before", "accumulated", "after"]
"""When a tensor can be read: in the call, when the gradient reaches its output, when the gradient
has passed through to its input, before the optimizer's step, after each accumulation, after the
step."""

CALL: dict[str, Moment] = {
    "input": "forward",
    "output": "forward",
    "grad_output": "backward",
    "grad_input": "entry",
}
PARAMETER: dict[str, Moment] = {
    "weight": "before",
    "grad": "before",
    "grad_raw": "accumulated",
    "update": "after",
}
TENSORS: dict[str, Moment] = {**CALL, **PARAMETER}

STATE = "state_"
"""``state_exp_avg`` is the optimizer's state ``exp_avg`` of a parameter, after the step."""

ANYTIME = frozenset({"weight", "module"})
"""Can be had at every moment, beside another feature."""


@dataclass(frozen=True, slots=True)
class Feature:
    """A tensor (``output``), the ``module`` itself, or with a part the summary of a tensor."""

    tensor: str
    part: str = ""

    @property
    def name(self) -> str:
        """As a function's parameter spells it."""
        tensor = self.tensor.replace(".", "_", 1)
        return f"{tensor}_{self.part}" if self.part else tensor


def moment_of(tensor: str) -> Moment:
    """When a tensor can be read.

    >>> moment_of("grad_output"), moment_of("state.exp_avg")
    ('backward', 'after')
    """
    return TENSORS.get(tensor, "before" if tensor == "module" else "after")


def read(parameter: str, parts: Collection[str]) -> Feature:
    """Read a feature's name.

    Raises
    ------
    QuantityError
        No such feature; the message lists the close ones.

    Examples
    --------
    >>> read("state_exp_avg", ("sumsq",))
    Feature(tensor='state.exp_avg', part='')
    >>> read("grad_output_sumsq", ("sumsq",))
    Feature(tensor='grad_output', part='sumsq')
    """
    known = _known(tuple(parts))
    if parameter in known:
        return known[parameter]
    if parameter.startswith(STATE) and len(parameter) > len(STATE):
        key = parameter.removeprefix(STATE)
        part = next((part for part in parts if key.endswith(f"_{part}")), "")
        return Feature(f"state.{key.removesuffix(f'_{part}') if part else key}", part)
    raise QuantityError(
        f"no feature {parameter!r}; {near(parameter, known, 2)}; "
        f"tensors: {', '.join(TENSORS)}, {STATE}KEY, and module"
    )


@cache
def _known(parts: tuple[str, ...]) -> dict[str, Feature]:
    summaries = (Feature(tensor, part) for tensor in TENSORS for part in ("", *parts))
    return {feature.name: feature for feature in (Feature("module"), *summaries)}
