"""Alert rules: a condition whose parameter names are series, and a sentence.

>>> @rule(rows=3)
... def top_heavy(top_share, most=0.9):
...     \"\"\"one unit has {top_share:.0%} of the activation, more than {most:.0%}\"\"\"
...     return top_share > most
>>> top_heavy.quantities, dict(top_heavy.thresholds)
(('top_share',), {'most': 0.9})
>>> top_heavy.but(most=0.5, rows=1).thresholds["most"]
0.5
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from string import Formatter
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args, overload

from notebook_probe.errors import RuleError, UnknownNameError, near
from notebook_probe.registry import Registry

__all__ = ["FLOWS", "RULES", "SEVERITIES", "Flow", "Once", "Rule", "Severity", "rule"]

Flow: TypeAlias = Literal["forward", "backward"]
Once: TypeAlias = Literal["module", "run"]
Severity: TypeAlias = Literal["remark", "warning", "severe"]

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""The heaviest last."""

FLOWS: tuple[Flow, ...] = get_args(Flow)

WORDS = ("step", "since", "steps_held")
"""Names in a sentence in addition to its quantities and thresholds."""

CONTEXT = ("at", "first", "first_loss")
"""Keyword parameters of a condition: the steps of the rows, the first values, the first losses."""

EDITABLE = ("rows", "steps", "again")


@dataclass(frozen=True, eq=False, repr=False)
class Rule:
    """A condition over series, how long it must hold, and the sentence of its alert.

    Made by `rule`, changed by `but`. Each number here can be edited.

    Attributes
    ----------
    quantities : tuple of str
        The series it looks at; it is asked at every row of the first.
    thresholds : mapping of str to float
        ``window`` among them is the number of rows before that the condition sees.
    says : str
        A format string of quantities, thresholds, ``step``, ``since`` and ``steps_held``.
    rows, steps : int
        Measured rows in a row, and steps, for which the condition must hold.
    again : int or None
        Rows without it after which it may be said again; None for once.
    once : "module" or "run"
        Report once for each module, or once for the whole run.
    severity : "remark", "warning" or "severe"
        Severe: what is trained from here on is hardly worth it. A remark may be intended: it is in
        `Run.remarks`, not among the alerts.
    explained_by : tuple of str
        Quantities that tell more of it where it was said, the most telling first.
    flow : "forward", "backward" or None
        Direction in which the problem travels: activations forward, gradients backward. Among the
        modules that fulfil the condition at one step, it started at the one that the flow reaches
        first. None: it does not travel.
    consequence_of : tuple of str
        The rules whose alerts may be its cause, the most direct first.
    """

    name: str
    condition: Callable[..., Any]
    quantities: tuple[str, ...]
    thresholds: Mapping[str, float]
    says: str
    tells: tuple[str, ...] = ()
    """Names of the values that the condition returns with the mask, for the sentence."""
    rows: int = 1
    steps: int = 0
    again: int | None = None
    once: Once = "module"
    view: str = "lines"
    source: str = ""
    severity: Severity = "warning"
    explained_by: tuple[str, ...] = ()
    flow: Flow | None = None
    consequence_of: tuple[str, ...] = ()
    context: tuple[str, ...] = ()
    """Names in `CONTEXT` that the condition takes in addition to the series."""

    def __post_init__(self) -> None:
        _check(self)

    @property
    def window(self) -> int:
        """Number of earlier rows that the condition sees."""
        return int(self.thresholds.get("window", 0))

    @property
    def numbers(self) -> dict[str, float | None]:
        """All that `but` changes."""
        return {**self.thresholds, **{name: getattr(self, name) for name in EDITABLE}}

    def is_new_after(self, n_rows: int) -> bool:
        """Return whether after so many quiet rows it may be reported again."""
        return self.again is not None and n_rows >= self.again

    def but(self, **numbers: float | None) -> Rule:
        """Return the rule with other numbers: thresholds, or ``rows``, ``steps``, ``again``.

        Raises
        ------
        UnknownNameError, RuleError
            For a number that it has not, or that cannot be.
        """
        known = (*self.thresholds, *EDITABLE)
        for name in numbers:
            if name not in known:
                raise UnknownNameError(f"rule {self.name!r} has no {name!r}; {near(name, known)}")
        changes: dict[str, Any] = dict(numbers)
        fields = {name: changes.pop(name) for name in EDITABLE if name in changes}
        thresholds = MappingProxyType({**self.thresholds, **changes})
        return replace(self, thresholds=thresholds, **fields)

    def __repr__(self) -> str:
        numbers = [f"{name}={number:g}" for name, number in self.thresholds.items()]
        numbers += [f"rows={self.rows}"] if self.rows > 1 else []
        numbers += [f"steps={self.steps}"] if self.steps else []
        return f"<rule {self.name}({', '.join((*self.quantities, *numbers))})>"


def _same_definition(old: Rule, new: Rule) -> bool:
    """Return whether both are from the same cell, run twice, rather than two rules."""
    homes = [
        (one.condition.__module__, getattr(one.condition, "__qualname__", one.name))
        for one in (old, new)
    ]
    return homes[0] == homes[1]


RULES: Registry[Rule] = Registry("alert rule", "notebook_probe.rules", _same_definition)
"""Every rule by name; runs follow them all, including those registered later."""


@overload
def rule(function: Callable[..., Any], /) -> Rule: ...
@overload
def rule(
    *,
    name: str | None = ...,
    says: str | None = ...,
    tells: Sequence[str] = ...,
    rows: int = ...,
    steps: int = ...,
    again: int | None = ...,
    once: Once = ...,
    view: str = ...,
    source: str = ...,
    severity: Severity = ...,
    explained_by: Sequence[str] = ...,
    flow: Flow | None = ...,
    consequence_of: Sequence[str] = ...,
) -> Callable[[Callable[..., Any]], Rule]: ...
def rule(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    says: str | None = None,
    tells: Sequence[str] = (),
    rows: int = 1,
    steps: int = 0,
    again: int | None = None,
    once: Once = "module",
    view: str = "lines",
    source: str = "",
    severity: Severity = "warning",
    explained_by: Sequence[str] = (),
    flow: Flow | None = None,
    consequence_of: Sequence[str] = (),
) -> Rule | Callable[[Callable[..., Any]], Rule]:
    """Make an alert rule of a condition, and have every run follow it.

    Parameters of the condition without a default are quantities, those with one its thresholds. The
    quantities are float64 arrays (row, module), the rows in order of their steps, the modules in
    order of the flow, or of definition, with NaN where nothing was measured; where modules take
    turns, a row is a round of them, at the step of its last turn. All but the first have the last
    known value, of the module or of the nearest one above it. It returns a mask of their
    shape, or one per row, (row,), for the model as a whole. The result for a row may depend on that
    row and on ``window`` rows before it, no others.

    Behind a ``*`` it may name ``at``, the step of each row, (row,), ``first``, the median of the
    first ten values of its first quantity, (row, module), and, if ``loss`` is one of the others,
    ``first_loss``, the median of the first ten losses, (row,); both NaN before they are known.

    Parameters
    ----------
    name : str, optional
        The function's own by default.
    says : str, optional
        The sentence, a format string; by default the first paragraph of the docstring.
    tells : sequence of str
        The condition returns ``mask, {name: array}``, arrays like the mask, for the sentence.
    rows, steps : int
        Measured rows in a row, and steps, for which it must hold.
    again : int, optional
        Rows without it after which it may be reported again; by default it is reported once.
    once : "module" or "run"
        Report for each module, or for the first one only.
    view : str
        The view of the Explorer that explains it.
    severity : "remark", "warning" or "severe"
        Severe alerts are marked as such in the panel; remarks are listed apart from alerts.
    explained_by : sequence of str
        Quantities that tell more of it, the most telling first: the panel offers to attach the
        first that fits where it was said.
    flow : "forward" or "backward", optional
        Direction in which the problem travels through the model, activations forward and gradients
        backward; it determines at which of several modules the problem started.
    consequence_of : sequence of str
        The rules whose alerts may be its cause, the most direct first; where one of them was
        raised shortly before, this one is listed below it.

    Raises
    ------
    RuleError
        A condition without quantities, a sentence that names what is not there, a number that
        cannot be.

    Examples
    --------
    >>> @rule(steps=200)
    ... def large_output(output_abs_max, most=1e4):
    ...     \"\"\"outputs up to {output_abs_max:.2g} for {steps_held} steps\"\"\"
    ...     return output_abs_max > most
    """

    def make(function: Callable[..., Any]) -> Rule:
        quantities, context, thresholds = _parameters(function)
        if not quantities:
            raise RuleError(f"{function!r} has no quantity: no parameter without a default")
        made = Rule(
            name=name or str(getattr(function, "__name__", "")),
            condition=function,
            quantities=quantities,
            thresholds=MappingProxyType(thresholds),
            says=says if says is not None else _first_paragraph(function),
            tells=_several(tells),
            rows=rows,
            steps=steps,
            again=again,
            once=once,
            view=view,
            source=source,
            severity=severity,
            explained_by=_several(explained_by),
            flow=flow,
            consequence_of=_several(consequence_of),
            context=context,
        )
        RULES.add(made.name, made)
        return made

    return make if function is None else make(function)


def _several(given: str | Sequence[str]) -> tuple[str, ...]:
    """Return a tuple; a single text becomes one element."""
    return (given,) if isinstance(given, str) else tuple(given)


def _parameters(
    function: Callable[..., Any],
) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, Any]]:
    """Return quantities, context and thresholds."""
    if not callable(function):
        raise RuleError(f"{function!r} is no condition; a function of series is expected")
    parameters = inspect.signature(function).parameters.values()
    empty = inspect.Parameter.empty
    given = [one for one in parameters if one.default is empty]
    context = tuple(one.name for one in given if one.kind is one.KEYWORD_ONLY)
    for one in given:
        if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD) or (set(context) - {*CONTEXT}):
            raise RuleError(
                f"{function!r} takes {one}; series are given by position, and by keyword "
                f"{', '.join(CONTEXT)}"
            )
    quantities = tuple(one.name for one in given if one.name not in context)
    if "first_loss" in context and "loss" not in quantities:
        raise RuleError(f"{function!r} takes first_loss without loss; name loss as a quantity")
    thresholds = {one.name: one.default for one in parameters if one.default is not empty}
    return quantities, context, thresholds


def _first_paragraph(function: Callable[..., Any]) -> str:
    return " ".join((inspect.getdoc(function) or "").partition("\n\n")[0].split())


def _check(one: Rule) -> None:
    """Raise RuleError unless it can work."""
    lists = (*one.tells, *one.explained_by, *one.consequence_of)
    for text in (one.name, one.says, one.view, one.source, *lists):
        if not isinstance(text, str):
            raise RuleError(
                f"rule {one.name}: {text!r}; name, says, tells, view, source are text, and so are "
                f"explained_by and consequence_of"
            )
    if not one.name.isidentifier():
        raise RuleError(f"rule name {one.name!r} must be an identifier, like 'top_heavy'")
    if one.once not in get_args(Once):
        raise RuleError(f"rule {one.name}: once={one.once!r}; allowed: {', '.join(get_args(Once))}")
    if one.severity not in SEVERITIES:
        allowed = ", ".join(SEVERITIES)
        raise RuleError(f"rule {one.name}: severity={one.severity!r}; allowed: {allowed}")
    if one.flow not in (None, *FLOWS):
        raise RuleError(f"rule {one.name}: flow={one.flow!r}; allowed: {', '.join(FLOWS)}, or None")
    if one.name in one.consequence_of:
        raise RuleError(f"rule {one.name}: it is no consequence of itself")
    for name, number in one.thresholds.items():
        if not isinstance(number, Real) or isinstance(number, bool) or number != number:
            raise RuleError(f"rule {one.name}: {name}={number!r}; a threshold is a real number")
    window = one.thresholds.get("window", 0)
    if window < 0 or window % 1 != 0:  # an infinite one has no remainder either
        raise RuleError(f"rule {one.name}: window={one.thresholds['window']!r}; whole rows, from 0")
    for name, least in (("rows", 1), ("steps", 0), ("again", 1)):
        number = getattr(one, name)
        if number is not None and (type(number) is not int or number < least):
            raise RuleError(f"rule {one.name}: {name}={number!r}; an integer from {least}")
    _check_sentence(one)


def _check_sentence(one: Rule) -> None:
    known = (*one.quantities, *one.thresholds, *one.tells, *WORDS)
    if not one.says:
        raise RuleError(f"rule {one.name} says nothing; give it a docstring, or says=")
    try:
        fields = [field for _, field, _, _ in Formatter().parse(one.says) if field is not None]
        unknown = [field for field in fields if field not in known]
        if not unknown:
            one.says.format(**dict.fromkeys(known, 1.0))
    except (ValueError, IndexError) as error:
        raise RuleError(f"rule {one.name} cannot say {one.says!r}: {error}") from None
    if unknown:
        raise RuleError(
            f"rule {one.name} cannot say {{{unknown[0]}}}; {near(unknown[0], known, 12)}"
        )
