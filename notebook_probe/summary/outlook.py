"""Progress of a training: which unit a step ends, and which units are due."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from notebook_probe.summary.settings import CollectorSettings, Unit
from notebook_probe.summary.units import NOTHING, Due, DueRule

__all__ = ["Outlook", "UnitSchedule", "Units"]


@dataclass(frozen=True, slots=True)
class Outlook:
    """Known position and end of a training.

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
        Offset of the queried steps against the counted ones.
    """

    end_step: int | None = None
    epoch: int = 1
    epoch_end: int | None = None
    n_epochs: int | None = None
    shift: int = 0

    def ends(self, step: int, unit: Unit) -> int | None:
        """Return the unit whose last step this is; None within an epoch.

        Examples
        --------
        >>> Outlook(epoch=3, epoch_end=29).ends(29, "epoch"), Outlook().ends(29, "step")
        (3, 30)
        """
        if unit == "step":
            return step - self.shift + 1
        return self.epoch if step == self.epoch_end else None

    def total(self, unit: Unit) -> int | None:
        """Return the number of the training's last unit."""
        return self.end_step if unit == "step" else self.n_epochs


class Units:
    """Due data and tensors of each step: one source of truth for probes, hooks and items.

    Parameters
    ----------
    settings : CollectorSettings

    Attributes
    ----------
    outlook : Outlook
        Present outlook; replaced by whatever follows the training.
    """

    def __init__(self, settings: CollectorSettings) -> None:
        self.unit = settings.unit
        self.outlook = Outlook()
        self._rule = DueRule(settings.collect_freq, settings.collect_tensor_freq)
        self._first: int | None = None
        self._last: tuple[int, Outlook | None, Due] = -1, None, NOTHING

    def unit_of(self, step: int) -> int | None:
        """Return the unit that ends with a step."""
        return self.outlook.ends(step, self.unit)

    def due(self, step: int) -> Due:
        """Return what is due at a step; the first queried step is the first unit seen."""
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
