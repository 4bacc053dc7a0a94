"""Conditions of breakpoints, as frozen values with a text and a validity check.

`Comparison` is the sign and the number that a user types, `SeriesTrack` follows the rows of a
series under a condition, and `Hit` is a condition that was met. Imported without torch, as the
panel uses them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Protocol, Self, TypeAlias

from notebook_probe.checks import whole_number
from notebook_probe.errors import BreakpointError, UnknownNameError, near
from notebook_probe.json_numbers import json_value

__all__ = [
    "CROSSES",
    "SEVERE",
    "AtStep",
    "Before",
    "Comparison",
    "Hit",
    "OnAlert",
    "OnError",
    "OnNan",
    "OnSeries",
    "PauseCondition",
    "SeriesTrack",
    "as_comparison",
    "pause_text",
    "would_pause",
]

CROSSES = "crosses"

SIGNS: dict[str, Callable[[float, float], bool]] = {
    ">": lambda value, threshold: value > threshold,
    "<": lambda value, threshold: value < threshold,
    ">=": lambda value, threshold: value >= threshold,
    "<=": lambda value, threshold: value <= threshold,
}
TEXT = re.compile(r"\s*([<>]=?|[^\W\d]+)\s*(\S+)\s*")


@dataclass(frozen=True, slots=True)
class Comparison:
    """A sign and a number; `CROSSES` compares with the row before.

    Examples
    --------
    >>> str(as_comparison("> 1e1"))
    '> 10'
    """

    sign: str
    threshold: float

    def __post_init__(self) -> None:
        if self.sign not in (*SIGNS, CROSSES):
            allowed = (*SIGNS, CROSSES)
            raise BreakpointError(f"no comparison {self.sign!r}; {near(self.sign, allowed)}")
        # An infinite threshold is met always or never, and NaN never.
        if not math.isfinite(self.threshold):
            raise BreakpointError(f"{self.sign} {self.threshold}: a finite number is needed")

    def __str__(self) -> str:
        return f"{self.sign} {self.threshold:g}"

    def holds(self, value: float, before: float) -> bool:
        """Return whether it holds for a value, given the one in the row before; never for NaN."""
        if self.sign != CROSSES:
            return SIGNS[self.sign](value, self.threshold)
        # On the threshold counts as below it, so that one crossing is not found twice.
        return min(value, before) <= self.threshold < max(value, before)


def as_comparison(text: object) -> Comparison:
    """Return the comparison in a text.

    Raises
    ------
    BreakpointError
        Invalid text, with what is allowed.
    """
    found = TEXT.fullmatch(text) if isinstance(text, str) else None
    try:
        if found is not None:
            return Comparison(found[1], float(found[2]))
    # BreakpointError is a ValueError, whose own text is better than the general one below.
    except ValueError as error:
        if isinstance(error, BreakpointError):
            raise
    raise BreakpointError(f"when={text!r}; such as '> 10', '< 1e-6' or 'crosses 0.5' is expected")


Before: TypeAlias = Literal["step", "update"]
"""Place of the pause: before the next batch is taken, or before the gradient is applied."""

SEVERE = "severe"
"""Every rule that reports a training which is about to be lost."""


class PauseCondition(Protocol):
    """Condition that pauses training."""

    kind: ClassVar[str]

    @property
    def before(self) -> Before: ...

    @property
    def text(self) -> str:
        """Text of the condition, as listed."""
        ...

    @property
    def number(self) -> float | None:
        """The number that can be edited in place; None without one."""
        ...

    def but(self, number: float) -> Self:
        """Return the condition with another number; raises BreakpointError."""
        ...


class _WithoutNumber:
    """A condition in which there is nothing to edit."""

    @property
    def number(self) -> float | None:
        return None

    def but(self, number: float) -> Self:
        raise BreakpointError(f"there is no number in it that could be {number:g}")


@dataclass(frozen=True, slots=True)
class AtStep:
    """Condition: step ``step`` is about to be trained, after as many updates."""

    kind: ClassVar[str] = "step"
    step: int

    def __post_init__(self) -> None:
        whole_number("step", self.step, error=BreakpointError)

    @property
    def before(self) -> Before:
        return "step"

    @property
    def text(self) -> str:
        return f"at step {self.step}"

    @property
    def number(self) -> float | None:
        return self.step

    def but(self, number: float) -> Self:
        # Typed numbers arrive from the panel as floats.
        whole = int(number) if number % 1 == 0 else number
        return replace(self, step=whole_number("step", whole, error=BreakpointError))


@dataclass(frozen=True, slots=True)
class OnAlert(_WithoutNumber):
    """Condition: a rule fires, one of ``rules`` by name, or any severe one."""

    kind: ClassVar[str] = "alert"
    rules: tuple[str, ...] = (SEVERE,)

    @property
    def before(self) -> Before:
        return "step"

    @property
    def text(self) -> str:
        if self.rules == (SEVERE,):
            return "a severe alert fires"
        return f"alert {' or '.join(self.rules)}"

    def check(self, known: Collection[str]) -> None:
        """Raise UnknownNameError for a rule that is not followed."""
        for name in self.rules:
            if name != SEVERE and name not in known:
                raise UnknownNameError(f"no alert rule {name!r}; {near(name, [SEVERE, *known])}")


@dataclass(frozen=True, slots=True)
class OnSeries:
    """Condition: a series compares with a number, in several consecutive measured rows."""

    kind: ClassVar[str] = "series"
    module: str
    """Module as written on module axes; ``(root)`` for logged scalars."""
    quantity: str
    comparison: Comparison
    for_rows: int = 1
    before: Before = "step"

    def __post_init__(self) -> None:
        n = whole_number("for_rows", self.for_rows, least=1, error=BreakpointError)
        # It holds in the row of the crossing only, so it can never hold in several.
        if n > 1 and self.comparison.sign == CROSSES:
            raise BreakpointError(f"for_rows={n}: a series crosses in one row; use > or <")

    @property
    def series(self) -> str:
        """Name of the series, as on its line."""
        place = "" if self.module == "(root)" else f"{self.module} · "
        return f"{place}{self.quantity}"

    @property
    def text(self) -> str:
        rows = f" for {self.for_rows} rows" if self.for_rows > 1 else ""
        before = ", before the update" if self.before == "update" else ""
        return f"{self.series} {self.comparison}{rows}{before}"

    @property
    def number(self) -> float | None:
        return self.comparison.threshold

    def but(self, number: float) -> Self:
        return replace(self, comparison=Comparison(self.comparison.sign, number))


@dataclass(frozen=True, slots=True)
class OnNan(_WithoutNumber):
    """Condition: a watched loss, output or gradient is NaN or infinite."""

    kind: ClassVar[str] = "nan"
    before: Before = "step"

    @property
    def text(self) -> str:
        before = ", before the update" if self.before == "update" else ""
        return f"a loss, output or gradient is NaN or infinite{before}"


@dataclass(frozen=True, slots=True)
class OnError(_WithoutNumber):
    """Condition: the loop raises."""

    kind: ClassVar[str] = "error"

    @property
    def before(self) -> Before:
        return "step"

    @property
    def text(self) -> str:
        return "the loop raises"


@dataclass(slots=True)
class _Row:
    """State after a row."""

    value: float = math.nan
    n_held: int = 0


class SeriesTrack:
    """Sees the rows of a series one by one.

    Parameters
    ----------
    condition : OnSeries
    """

    def __init__(self, condition: OnSeries) -> None:
        self._condition = condition
        self._step, self._before, self._last = -1, _Row(), _Row()

    def see(self, step: int, value: float) -> bool:
        """Add a row; return True if with it the condition has held for long enough.

        A second row of the same step, with more values, replaces the first.
        """
        if step != self._step:
            self._step, self._before = step, self._last
        before = self._before
        holds = self._condition.comparison.holds(value, before.value)
        n_before = 0 if self._condition.comparison.sign == CROSSES else before.n_held
        self._last = _Row(value, n_before + 1 if holds else 0)
        # Equal, not at least: a stretch is reported once.
        return self._last.n_held == self._condition.for_rows


def would_pause(condition: OnSeries, rows: Iterable[tuple[int, float]]) -> list[int]:
    """Return the steps at which a condition would have paused training.

    Examples
    --------
    >>> from notebook_probe.run.breakpoints.conditions import as_comparison
    >>> condition = OnSeries("fc", "grad_norm", as_comparison("> 1"))
    >>> would_pause(condition, enumerate([0.0, 2.0, 3.0, 0.5, 4.0]))
    [1, 4]
    """
    track = SeriesTrack(condition)
    return [step for step, value in rows if track.see(step, value)]


@dataclass(frozen=True, slots=True)
class Hit:
    """A condition that was met.

    Attributes
    ----------
    step : int
        Step of the row, the step that waits, or the one that raised.
    what : str
        Description in words: ``conv3 · grad_norm 12.3 > 10``.
    """

    id: int
    condition: PauseCondition
    step: int
    what: str
    module: str = ""
    quantity: str = ""
    value: float | None = None
    threshold: float | None = None
    more: dict[str, Any] = field(default_factory=dict)
    """Further facts for programs."""
    traceback: str = ""
    """Traceback of the exception, if any."""

    @property
    def detail(self) -> str:
        """Details for its event: JSON."""
        return json.dumps(
            {
                "condition": self.condition.text,
                "module": self.module,
                "quantity": self.quantity,
                "value": json_value(self.value),
                "threshold": self.threshold,
                "step": self.step,
                **self.more,
            }
        )


def pause_text(hits: Sequence[Hit], step: int) -> str:
    """Return the reason for the pause before ``step``; the first condition met counts.

    Examples
    --------
    >>> pause_text([Hit(1, AtStep(7), 7, "")], 7)
    'paused at step 7'
    """
    first = hits[0]
    what = f": {first.what}" if first.what else ""
    # Rows are known a step after theirs, unless a breakpoint made them hurry.
    late = step - 1 - first.step
    told = f" (known {late} step{'s' if late > 1 else ''} later)" if late > 0 else ""
    more = f" … and {len(hits) - 1} more" if len(hits) > 1 else ""
    return f"paused at step {first.step}{what}{told}{more}"
