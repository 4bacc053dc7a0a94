"""Features: what a quantity may ask of a module or a parameter, and when it can be read.

A feature is a tensor (``output``), a summary of one (``output_moments``), or a value of the step
(``logged_loss``). The four tensors of a call belong to modules. Others belong to parameters, by
their own name or that of their module, and others to the step as a whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

from notebook_probe.errors import QuantityError, near

__all__ = [
    "CALL",
    "PARAMETER",
    "STEP",
    "TENSORS",
    "Feature",
    "Moment",
    "is_anytime",
    "is_of_step",
    "moment_of",
    "moment_of_all",
    "read",
]

Moment: TypeAlias = Literal[
    "forward", "backward", "entry", "before", "accumulated", "after", "handed", "closing"
]
"""When a feature can be read: in the call, when the gradient reaches its output, when the gradient
has passed through to its input, before the optimizer's step, after each accumulation, after the
step; when the loop hands it over, and when the step is over."""

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

KEYED: dict[str, Moment] = {"state": "after", "batch": "handed", "logged": "closing"}
"""Families of features by key: ``state_exp_avg`` is the optimizer's state ``exp_avg`` of a
parameter, ``batch_targets`` what ``run.batch(targets=...)`` handed over, ``logged_loss`` what
``run.log(loss=...)`` recorded."""

STEP: dict[str, Moment] = {
    "logged": "closing",
    "step_seconds": "closing",
    "wait_seconds": "closing",
    "peak_bytes": "closing",
}
"""Of the step as a whole: everything logged, by name; how long it took, and waited for data in
``run.batches(loader)``; the most memory used so far."""

_FIXED = {**TENSORS, **STEP}

ANYTIME = frozenset({"weight", "module"})


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

    @property
    def is_summary(self) -> bool:
        """Known once the step is over: a summary of a tensor, or a value of the step."""
        return bool(self.part) or is_of_step(self.tensor)


def moment_of(tensor: str) -> Moment:
    """When a tensor can be read.

    >>> moment_of("grad_output"), moment_of("state.exp_avg"), moment_of("logged.loss")
    ('backward', 'after', 'closing')
    """
    known = _FIXED.get(tensor)
    return known or KEYED.get(tensor.partition(".")[0], "before")


def moment_of_all(tensors: Iterable[str]) -> Moment:
    """When some tensors can be read together: when the one that cannot wait is there.

    >>> moment_of_all(["output", "batch.targets"]), moment_of_all(["batch.losses", "module"])
    ('forward', 'handed')
    """
    moments = [moment_of(tensor) for tensor in tensors if tensor not in ANYTIME]
    hurried = [moment for moment in moments if moment != "handed"]
    return next(iter(hurried or moments), "before")


def is_of_step(tensor: str) -> bool:
    """Whether it is a value of the step as a whole, known when the step is over."""
    return moment_of(tensor) == "closing"


def is_anytime(tensor: str) -> bool:
    """Whether it can be had at every moment, beside another feature.

    >>> is_anytime("weight"), is_anytime("batch.targets"), is_anytime("output")
    (True, True, False)
    """
    return tensor in ANYTIME or moment_of(tensor) == "handed"


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
    family, _, key = parameter.partition("_")
    if family in KEYED and key:
        part = next((part for part in parts if key.endswith(f"_{part}")), "")
        return Feature(f"{family}.{key.removesuffix(f'_{part}') if part else key}", part)
    families = ", ".join(f"{family}_KEY" for family in KEYED)
    raise QuantityError(
        f"no feature {parameter!r}; {near(parameter, known, 2)}; "
        f"tensors: {', '.join(TENSORS)}, {families}, and module; of the step: {', '.join(STEP)}"
    )


@cache
def _known(parts: tuple[str, ...]) -> dict[str, Feature]:
    summaries = (Feature(tensor, part) for tensor in TENSORS for part in ("", *parts))
    whole = (Feature(name) for name in ("module", *STEP))
    return {feature.name: feature for feature in (*whole, *summaries)}
