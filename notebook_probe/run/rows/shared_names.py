"""Names that two series share: a warning says once under which name each is read."""

from __future__ import annotations

import warnings
from collections.abc import Collection

from notebook_probe.errors import ReplacedWarning
from notebook_probe.record.views.own_names import OwnNames

__all__ = ["SharedNames"]


class SharedNames:
    """Reports logged series whose name another series has, once for each.

    Attributes
    ----------
    own_names : mapping
        Names under which they are read, as decided when the last series began.
    """

    def __init__(self) -> None:
        self.own_names: OwnNames = {}
        self._told: set[tuple[bool, str]] = set()

    def tell(self, names: Collection[str], own_names: OwnNames) -> None:
        """Warn of those of some names that are read under another.

        Parameters
        ----------
        names : collection of str
            Series that have just begun.
        own_names : mapping
            Present names of all series that are read under another name.

        Warns
        -----
        ReplacedWarning
        """
        self.own_names = own_names
        for (of_states, name), own in self.own_names.items():
            if name in names and (of_states, name) not in self._told:
                self._told.add((of_states, name))
                warnings.warn(_advice(name, own, of_states), ReplacedWarning, stacklevel=5)


def _advice(name: str, own: str, of_states: bool) -> str:
    which = "the series of evaluations has" if of_states else "what is logged has"
    return (
        f"log({name}): another series has this name; {which} another name, {own!r}, as in "
        f"run.series('', {own!r})"
    )
