"""Features: what a quantity may ask of a module or a parameter, and when it can be read.

A feature is a tensor (``output``), a summary of one (``output_moments``), or a value of the step
(``logged_loss``). The four tensors of a call belong to modules. Others belong to parameters, by
their own name or that of their module, and others to the step as a whole. ``each_grad_sumsq`` holds
one summary for every module below a place that owns parameters, ``each_grad`` the tensors of
all parameters below a place, for a window.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, TypeAlias, get_args

from notebook_probe.errors import QuantityError, near

__all__ = [
    "ANYTIME",
    "CALL",
    "EACH",
    "PARAMETER",
    "REPLAY",
    "STEP",
    "TENSORS",
    "Feature",
    "Moment",
    "clash",
    "given_by",
    "is_of_all",
    "is_of_step",
    "meeting",
    "moment_of",
    "read",
]

Moment: TypeAlias = Literal[
    "inside",
    "forward",
    "backward",
    "entry",
    "before",
    "ready",
    "accumulated",
    "after",
    "batch",
    "closing",
    "replay",
]
"""Moment when a feature can be read: while a call computes it, as the call begins or returns, when
the gradient reaches its output, when the gradient has passed through to its input, before the
optimizer's step, when the gradients are as it will apply them, after each accumulation, after the
step; when the loop passes it, when the step is over, and when the model is run once more on the
probe batch, as the step begins."""

CALL: dict[str, Moment] = {
    "input": "forward",
    "output": "forward",
    "grad_output": "backward",
    "grad_input": "entry",
    "attention": "inside",
}
"""``attention`` is no tensor but the scores of one attention, an `Attention`."""

PARAMETER: dict[str, Moment] = {
    "weight": "before",
    "grad": "ready",
    "grad_raw": "accumulated",
    "grad_micro": "accumulated",
    "update": "after",
}
REPLAY: dict[str, Moment] = {
    "probe_output": "replay",
    "landscape": "replay",
}
"""Features for which the model is run once more: a module's output for the probe batch, and the
`Landscape` of the loss around a module's parameters."""
TENSORS: dict[str, Moment] = {**CALL, **PARAMETER, **REPLAY}

KEYED: dict[str, Moment] = {
    "state": "after",
    "group": "ready",
    "batch": "batch",
    "logged": "closing",
}
"""Families of features by key: ``state_exp_avg`` is the optimizer's state ``exp_avg`` of a
parameter, ``group_lr`` the option ``lr`` of its parameter group, ``batch_targets`` what
``run.batch(targets=...)`` handed over, ``logged_loss`` what ``run.log(loss=...)`` recorded, or
the loss by another usual name, or that which nobody logs."""

STEP: dict[str, Moment] = {
    "logged": "closing",
    "step_seconds": "closing",
    "wait_seconds": "closing",
    "peak_bytes": "closing",
    "used_bytes": "closing",
    "busy_share": "closing",
    "device_watts": "closing",
    "loss_scale": "closing",
    "scaler": "closing",
}
"""Features of the step as a whole: everything logged, by name; how long it took, and waited for
data in ``run.batches(loader)``; the most memory used so far, what is used now, how busy the
device is, and what power it draws; the factor on the loss, and the state of the gradient scaler
that set it."""

_FIXED = {**TENSORS, **STEP}

ANYTIME = frozenset({"weight", "module"})
"""Features that exist without a step, too."""

_MOMENTS = frozenset(get_args(Moment))
_BESIDE: dict[str, frozenset[Moment]] = {
    **dict.fromkeys(ANYTIME, _MOMENTS),
    "batch": _MOMENTS - {"before", "replay"},
    "grad": frozenset({"ready", "after"}),
    "group": frozenset({"ready", "after"}),
}
"""Moments at which a feature can be read together with another one."""

OF_ALL = frozenset({"grad", "grad_raw", "grad_micro", "group"})
"""Summaries of these are of all parameters below a module, of the others of its weight."""

WHOLE = frozenset({"landscape"})
"""Features of all parameters below a module at once."""

EACH = "each_"


@dataclass(frozen=True, slots=True)
class Feature:
    """A tensor (``output``), the ``module`` itself, or with a part the summary of a tensor."""

    tensor: str
    part: str = ""
    each: bool = False
    """True for one summary for every module below the place that owns parameters, in the model's
    order; or for the tensors of all parameters there."""

    @property
    def name(self) -> str:
        """Name as a function's parameter spells it."""
        tensor = self.tensor.replace(".", "_", 1)
        name = f"{tensor}_{self.part}" if self.part else tensor
        return EACH + name if self.each else name

    @property
    def is_summary(self) -> bool:
        """Known once the step is over: a summary of a tensor, or a value of the step."""
        return bool(self.part) or is_of_step(self.tensor)


@cache
def moment_of(tensor: str) -> Moment:
    """Return when a tensor is read if no other one is requested with it.

    >>> moment_of("grad_output"), moment_of("state.exp_avg"), moment_of("logged.loss")
    ('backward', 'after', 'closing')
    """
    known = _FIXED.get(tensor)
    return known or KEYED.get(_family(tensor), "before")


def meeting(tensors: Iterable[str]) -> Moment | None:
    """Return the moment at which all of some tensors can be read; None when there is none.

    >>> meeting(["grad", "weight"]), meeting(["grad", "update"]), meeting(["grad", "output"])
    ('ready', 'after', None)
    >>> meeting(["output", "batch.targets"]), meeting(["module", "batch.losses"])
    ('forward', 'batch')
    """
    moments = {tensor: moment_of(tensor) for tensor in tensors}
    common = frozenset.intersection(
        *(_BESIDE.get(_family(tensor), frozenset({moment})) for tensor, moment in moments.items())
    )
    return next((moment for moment in moments.values() if moment in common), None)


def is_of_step(tensor: str) -> bool:
    """Return whether it is a value of the step as a whole, known when the step is over."""
    return moment_of(tensor) == "closing"


def is_of_all(feature: Feature) -> bool:
    """Return whether a feature is of all parameters below a module, not only of its weight."""
    if feature.each or feature.tensor in WHOLE:
        return True
    return bool(feature.part) and _family(feature.tensor) in OF_ALL


def _family(tensor: str) -> str:
    return tensor.partition(".")[0]


def given_by(need: str) -> str:
    """Return the source of a feature: the call that passes it, else its own name.

    Examples
    --------
    >>> given_by("batch.targets"), given_by("landscape"), given_by("output")
    ('run.batch(targets=...)', 'run.probe_batch(...)', 'output')
    """
    family, _, key = need.partition(".")
    if need in REPLAY:
        return "run.probe_batch(...)"
    if family == "batch":
        return f"run.batch({key}=...)"
    return f"run.log({key or 'loss'}=...)" if family == "logged" else need


def read(parameter: str, parts: Collection[str]) -> Feature:
    """Read a feature's name.

    Raises
    ------
    QuantityError
        No such feature; the message lists the close ones.

    Examples
    --------
    >>> read("state_exp_avg", ("sumsq",))
    Feature(tensor='state.exp_avg', part='', each=False)
    >>> read("each_grad_sumsq", ("sumsq",))
    Feature(tensor='grad', part='sumsq', each=True)
    """
    known = _known(tuple(parts))
    if parameter in known:
        return known[parameter]
    if parameter.startswith(EACH):
        return _each(parameter, parts)
    family, _, key = parameter.partition("_")
    if family in KEYED and key:
        part = next((part for part in parts if key.endswith(f"_{part}")), "")
        return Feature(f"{family}.{key.removesuffix(f'_{part}') if part else key}", part)
    families = ", ".join(f"{family}_KEY" for family in KEYED)
    raise QuantityError(
        f"no feature {parameter!r}; {near(parameter, known, 2)}; "
        f"tensors: {', '.join(TENSORS)}, {families}, and module; of the step: {', '.join(STEP)}"
    )


def clash(part: str, parts: Collection[str]) -> str:
    """Return the feature that a part of this name would hide, or be hidden by; empty if none.

    >>> clash("micro", ("sumsq",)), clash("output_sumsq", ("sumsq",)), clash("sizes", ("sumsq",))
    ('grad_micro', 'grad_output_sumsq', '')
    """
    known = _known(tuple(one for one in parts if one != part))
    return next((f"{tensor}_{part}" for tensor in TENSORS if f"{tensor}_{part}" in known), "")


def _each(parameter: str, parts: Collection[str]) -> Feature:
    feature = read(parameter.removeprefix(EACH), parts)
    if feature.tensor in CALL or not (feature.part or feature.tensor in PARAMETER):
        raise QuantityError(
            f"no feature {parameter!r}; {EACH}... is for {', '.join(PARAMETER)} and their "
            f"summaries, such as {EACH}grad_sumsq"
        )
    return replace(feature, each=True)


@cache
def _known(parts: tuple[str, ...]) -> dict[str, Feature]:
    summaries = (Feature(tensor, part) for tensor in TENSORS for part in ("", *parts))
    whole = (Feature(name) for name in ("module", *STEP))
    return {feature.name: feature for feature in (*whole, *summaries)}
