"""What a panel shows before anybody has chosen; each thing is chosen once."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from notebook_probe.explorer.messages.selection import PanelSelection, Series
from notebook_probe.record.format.loss_names import loss_name
from notebook_probe.record.format.source import ROOT

__all__ = ["RATE", "Defaults", "default_home", "default_series"]

HOMES = ("update_ratio", "grad_norm", "output_std")
"""Is the rate right, do the gradients arrive, does the signal: the first that compares modules."""

MOST_SERIES = 3
RATE = "lr"
"""Stands in the bar, and would press every other line to the edge of its axis."""


def default_home(recorded: Mapping[str, Sequence[str]], others: Collection[str] = ()) -> str:
    """The quantity to open with, "" before there is one.

    Parameters
    ----------
    recorded : mapping of str to sequence of str
        Quantity to the modules that have a value.
    others : collection of str
        Those that say nothing about modules: what the loop logs, counts of calls.

    Examples
    --------
    >>> default_home({"weight_norm": ["a", "b", "c"], "output_std": ["a", "b"]})
    'output_std'
    """
    for name in HOMES:
        if len(recorded.get(name, ())) > 1:
            return name
    measured = [name for name in recorded if name not in others]
    return max(measured, key=lambda name: len(recorded[name]), default="")


def default_series(logged: Sequence[str]) -> list[Series]:
    """The logged scalars in the order in which they are worth a line.

    Examples
    --------
    >>> default_series(["accuracy", "lr", "loss"])
    [('(root)', 'loss'), ('(root)', 'accuracy')]
    >>> default_series(["accuracy", "backward_loss"])
    [('(root)', 'backward_loss'), ('(root)', 'accuracy')]
    """
    loss = loss_name(logged)
    names = sorted((name for name in logged if name != RATE), key=lambda name: name != loss)
    return [(ROOT, name) for name in names]


class Defaults:
    """Fills what is open: a home quantity, and up to three lines of what is logged.

    A line is offered once, so that what is taken away stays away; once somebody has chosen lines,
    or a quantity, that is left alone.
    """

    def __init__(self) -> None:
        self._home_is_open = self.lines_are_open = True
        self._offered: list[Series] = []

    def chosen(self, before: PanelSelection, after: PanelSelection) -> None:
        """Somebody has chosen something."""
        self._home_is_open &= after.home == before.home
        self.lines_are_open &= after.series == before.series

    def fill(
        self,
        selection: PanelSelection,
        recorded: Mapping[str, Sequence[str]],
        logged: Sequence[str],
        counts: Collection[str],
    ) -> PanelSelection:
        """The selection with what is known by now in the open places."""
        home = default_home(recorded, [*logged, *counts]) if self._home_is_open else ""
        if home:
            self._home_is_open = False
            selection = replace(selection, home=home)
        room = MOST_SERIES - len(self._offered)
        if not (self.lines_are_open and room):
            return selection
        news = [one for one in default_series(logged) if one not in self._offered][:room]
        self._offered += news
        return selection.with_series(*news) if news else selection
