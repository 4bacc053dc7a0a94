"""Defaults of a panel until the user chooses; each is set once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from notebook_probe.explorer.messages.selection import PanelSelection, Series
from notebook_probe.record.format.loss_names import BACKWARD_LOSS, loss_name
from notebook_probe.record.format.source import ROOT

__all__ = ["RATE", "Defaults", "default_home", "default_series"]

HOMES = ("update_ratio", "grad_norm", "output_std")
"""Preferred quantities: is the rate right, do gradients arrive, does the signal arrive?"""

MOVING = "_moving"
"""Ending of the moving averages that a `notebook_probe.train` loop logs."""

MOST_SERIES = 3
RATE = "lr"
"""The rate is in the bar, and would squeeze every other line at the edge of its axis."""


def default_home(recorded: Mapping[str, Sequence[str]], others: Collection[str] = ()) -> str:
    """Return the quantity to open with, "" if there is none yet.

    Parameters
    ----------
    recorded : mapping of str to sequence of str
        Quantity to the modules that have a value.
    others : collection of str
        Quantities that are not about modules: logged scalars, counts of calls.

    Examples
    --------
    >>> default_home({"weight_norm": ["a", "b", "c"], "output_std": ["a", "b"]})
    'output_std'
    """
    for name in HOMES:
        # A heat map of a single row shows nothing that a line does not show better.
        if len(recorded.get(name, ())) > 1:
            return name
    measured = [name for name in recorded if name not in others]
    return max(measured, key=lambda name: len(recorded[name]), default="")


def default_series(logged: Sequence[str]) -> list[Series]:
    """Return the logged scalars in the order of their importance.

    Examples
    --------
    >>> default_series(["accuracy", "lr", "loss"])
    [('(root)', 'loss'), ('(root)', 'accuracy')]
    >>> default_series(["accuracy", "backward_loss"])
    [('(root)', 'backward_loss'), ('(root)', 'accuracy')]
    >>> default_series(["backward_loss", "loss"])
    [('(root)', 'loss')]
    >>> default_series(["loss", "loss_moving", "fn_loss_moving", "accuracy_moving"])
    [('(root)', 'loss'), ('(root)', 'accuracy_moving')]
    """
    loss = loss_name(logged)
    # The loss of backward() repeats the one that the loop logs; it is drawn only in its absence.
    left_out = {RATE} if loss == BACKWARD_LOSS else {RATE, BACKWARD_LOSS}
    left_out |= {name for name in logged if _averages_another(name, logged)}
    names = sorted((name for name in logged if name not in left_out), key=lambda name: name != loss)
    return [(ROOT, name) for name in names]


def _averages_another(name: str, logged: Sequence[str]) -> bool:
    """Return whether a loop logs a moving average of another scalar, which a panel draws itself."""
    of = name.removesuffix(MOVING)
    return of != name and any(of == one or of.endswith(f"_{one}") for one in logged)


class Defaults:
    """Default selection: a quantity for the heat map, and up to three logged lines.

    A line is offered once, so that it stays away once removed. Lines and quantities that the user
    has chosen are not changed.
    """

    def __init__(self) -> None:
        self._home_is_open = self.lines_are_open = True
        self._offered: list[Series] = []

    def chosen(self, before: PanelSelection, after: PanelSelection) -> None:
        """Note the user's choice."""
        self._home_is_open &= after.home == before.home
        self.lines_are_open &= after.series == before.series

    def fill(
        self,
        selection: PanelSelection,
        recorded: Mapping[str, Sequence[str]],
        logged: Sequence[str],
        counts: Collection[str],
    ) -> PanelSelection:
        """Return the selection, with defaults where the user has not chosen."""
        home = default_home(recorded, [*logged, *counts]) if self._home_is_open else ""
        if home:
            self._home_is_open = False
            selection = replace(selection, home=home)
        # Counted by what was offered, not by what is drawn: a removed line must not be replaced.
        room = MOST_SERIES - len(self._offered)
        if not (self.lines_are_open and room):
            return selection
        news = [one for one in default_series(logged) if one not in self._offered][:room]
        self._offered += news
        return selection.with_series(*news) if news else selection
