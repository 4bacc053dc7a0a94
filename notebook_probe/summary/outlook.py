"""How far a training is: which unit a step ends, and which of them are due."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from notebook_probe.summary.settings import Settings, Unit
from notebook_probe.summary.units import NOTHING, Due, Rule

__all__ = ["Outlook", "UnitSchedule", "Units"]


@dataclass(frozen=True, slots=True)
class Outlook:
    """What is known of where a training is and goes.

    Parameters
    ----------
    end_step : int or None
        Updates completed when it ends.
    epoch : int
        The one that is trained, counted from 1.
    epoch_end : int or None
        Last step of that epoch.
    n_epochs : int or None
    shift : int
        What the steps that are asked of are more than those that are counted.
    """

    end_step: int | None = None
    epoch: int = 1
    epoch_end: int | None = None
    n_epochs: int | None = None
    shift: int = 0

    def ends(self, step: int, unit: Unit) -> int | None:
        """The unit that a step is the last one of; None in the midst of an epoch.

        Examples
        --------
        >>> Outlook(epoch=3, epoch_end=29).ends(29, "epoch"), Outlook().ends(29, "step")
        (3, 30)
        """
        if unit == "step":
            return step - self.shift + 1
        return self.epoch if step == self.epoch_end else None

    def total(self, unit: Unit) -> int | None:
        """The last unit of the training."""
        return self.end_step if unit == "step" else self.n_epochs


class Units:
    """Says of each step what is due at it: one truth for probes, hooks and items.

    Parameters
    ----------
    settings : Settings

    Attributes
    ----------
    outlook : Outlook
        What is known now; whoever follows the training replaces it.
    """

    def __init__(self, settings: Settings) -> None:
        self.unit = settings.unit
        self.outlook = Outlook()
        self._rule = Rule(settings.collect_freq, settings.collect_tensor_freq)
        self._first: int | None = None
        self._last: tuple[int, Outlook | None, Due] = -1, None, NOTHING

    def unit_of(self, step: int) -> int | None:
        """The unit that ends with a step."""
        return self.outlook.ends(step, self.unit)

    def due(self, step: int) -> Due:
        """What is due at a step; the first one that is asked of is of the first unit seen."""
        outlook = self.outlook
        known_step, known_outlook, known = self._last
        if step != known_step or outlook is not known_outlook:  # several ask of each step
            known = self._worked_out(step, outlook)
            self._last = step, outlook, known
        return known

    def _worked_out(self, step: int, outlook: Outlook) -> Due:
        if self._first is None:
            self._first = outlook.epoch if self.unit == "epoch" else step - outlook.shift + 1
        unit = outlook.ends(step, self.unit)
        if unit is None:
            return NOTHING
        return self._rule.due(unit, self._first, outlook.total(self.unit))


@dataclass(frozen=True, slots=True, eq=False)
class UnitSchedule:
    """The steps at which data, or tensors, are due: the schedule of a collector's probes."""

    units: Units
    what: Literal["data", "tensors"]
    text: str

    def __call__(self, step: int) -> bool:
        return bool(getattr(self.units.due(step), self.what))

    @property
    def stream(self) -> str:
        return f"summary_{self.what}"

    def __str__(self) -> str:
        return self.text
