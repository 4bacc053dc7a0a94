"""Every run that was recorded, found again: on this machine, of a lab, in an object store.

::

    records ─▶ a row of each, read off its JSON ─▶ an index in a database ─▶ queries ─▶ a table

The truth is what the records say; the index can be lost and is built anew. Nothing here needs
torch, and SQLAlchemy only where a catalogue is opened.
"""

import sys
from inspect import signature
from types import ModuleType
from typing import Any

from notebook_probe.catalogue.held import Catalogue
from notebook_probe.catalogue.opening import catalogue, runs
from notebook_probe.catalogue.refreshing import Refreshed
from notebook_probe.catalogue.runs import Runs

__all__ = ["Catalogue", "Refreshed", "Runs", "catalogue", "runs"]


class _Room(ModuleType):
    """The folder itself, called as the function is that has its name in the package."""

    def __call__(self, place: Any = None, root: Any = None) -> Catalogue:
        return catalogue(place, root)


__signature__ = signature(catalogue)  # of the folder itself, too
sys.modules[__name__].__class__ = _Room
